"""Confirm the clock: a person looked at the date of this machine and says that it is right."""

from appliance.actions.beat import beat
from appliance.actions.note_security import note_security
from appliance.model.notices import ClockConfirmed
from appliance.store.conditions import drop_condition
from appliance.store.connection import Transaction

CLOCK_LEAPT = "clock_leapt"  # outlives the process: a restart makes no wrong clock right


def confirm_clock(tx: Transaction, actor: str) -> None:
    """Let things expire by it again (docs/decisions/time.md). For each environment by itself.

    `actor` as note_security wants it.
    """
    drop_condition(tx, CLOCK_LEAPT, "")
    beat(tx)
    note_security(tx, actor, "clock_confirmed")
    tx.notices.append(ClockConfirmed())
