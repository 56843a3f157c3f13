"""What a database keeps of the clock: heartbeat, clock mark, and a person's confirmation.

The heartbeat also proves that the database is writable.
"""

from appliance.alerts import CLOCK_LEAPT, drop_alert
from appliance.clock import ClockMark
from appliance.database.connection import Reader, Transaction
from appliance.outbox import ClockConfirmed
from appliance.staff.audit_log import record_audit


def find_heartbeat(reader: Reader) -> int | None:
    """Return the time of the last heartbeat, in ms since 1970; None if there is none."""
    return reader.one(int, "SELECT at FROM heartbeat WHERE id = 1")


def write_heartbeat(tx: Transaction) -> None:
    """Write a heartbeat; durable as any change, so it fails whenever a booking would fail."""
    sql = "INSERT INTO heartbeat (id, at) VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET at = :now"
    tx.execute(sql, {"now": tx.now})


def find_clock_mark(reader: Reader) -> ClockMark | None:
    """Return the stored clock mark; None in a new box."""
    return reader.one(ClockMark, "SELECT at, boot, offset_ms FROM clock_mark")


def find_latest_instant(reader: Reader) -> int | None:
    """Return the time of the latest scan, history entry or heartbeat, in ms since 1970, or None."""
    sql = """SELECT max(at) FROM (
                 SELECT * FROM (SELECT at FROM scan ORDER BY seq DESC LIMIT 1) UNION ALL
                 SELECT * FROM (SELECT at FROM history ORDER BY seq DESC LIMIT 1) UNION ALL
                 SELECT at FROM heartbeat)"""
    latest: int | None = reader.value(sql)
    return latest


def put_clock_mark(tx: Transaction, mark: ClockMark) -> None:
    """Store the clock mark, replacing the previous one."""
    sql = """INSERT INTO clock_mark (id, at, boot, offset_ms) VALUES (1, :at, :boot, :offset)
             ON CONFLICT (id) DO UPDATE SET at = :at, boot = :boot, offset_ms = :offset"""
    tx.execute(sql, {"at": mark.at, "boot": mark.boot, "offset": mark.offset})


def confirm_clock(tx: Transaction, actor: str) -> None:
    """Confirm the clock, so that expiry resumes (docs/decisions/time.md). One environment only.

    `actor` is as for `record_audit`.
    """
    drop_alert(tx, CLOCK_LEAPT, "")
    write_heartbeat(tx)
    record_audit(tx, actor, "clock_confirmed")
    tx.notices.append(ClockConfirmed())
