"""The last proof that this database can be written, and the last marks of the clock."""

from appliance.clock import ClockMark
from appliance.database.connection import Reader, Transaction


def find_heartbeat(reader: Reader) -> int | None:
    """When it last beat, in ms since 1970."""
    return reader.one(int, "SELECT at FROM heartbeat WHERE id = 1")


def write_heartbeat(tx: Transaction) -> None:
    """Durable like every other change, so that it fails where a booking would."""
    sql = "INSERT INTO heartbeat (id, at) VALUES (1, :now) ON CONFLICT (id) DO UPDATE SET at = :now"
    tx.execute(sql, {"now": tx.now})


def find_clock_mark(reader: Reader) -> ClockMark | None:
    """What was written last, None in a new box."""
    return reader.one(ClockMark, "SELECT at, boot, offset_ms FROM clock_mark")


def find_latest_instant(reader: Reader) -> int | None:
    """When the box last wrote something of the house, in ms since 1970; None in a new box."""
    sql = """SELECT max(at) FROM (
                 SELECT * FROM (SELECT at FROM scan ORDER BY seq DESC LIMIT 1) UNION ALL
                 SELECT * FROM (SELECT at FROM history ORDER BY seq DESC LIMIT 1) UNION ALL
                 SELECT at FROM heartbeat)"""
    latest: int | None = reader.value(sql)
    return latest


def put_clock_mark(tx: Transaction, mark: ClockMark) -> None:
    """Write it over the one before."""
    sql = """INSERT INTO clock_mark (id, at, boot, offset_ms) VALUES (1, :at, :boot, :offset)
             ON CONFLICT (id) DO UPDATE SET at = :at, boot = :boot, offset_ms = :offset"""
    tx.execute(sql, {"at": mark.at, "boot": mark.boot, "offset": mark.offset})
