"""Confirm the clock: a person states that the date and time of this machine are right."""

from appliance.alerts import CLOCK_LEAPT, drop_alert
from appliance.database.connection import Transaction
from appliance.database.heartbeat import write_heartbeat
from appliance.outbox import ClockConfirmed
from appliance.staff.audit_log import record_audit


def confirm_clock(tx: Transaction, actor: str) -> None:
    """Confirm the clock, so that expiry resumes (docs/decisions/time.md). One environment only.

    `actor` is as for `record_audit`.
    """
    drop_alert(tx, CLOCK_LEAPT, "")
    write_heartbeat(tx)
    record_audit(tx, actor, "clock_confirmed")
    tx.notices.append(ClockConfirmed())
