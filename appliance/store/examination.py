"""Questions about a database file and its rows, for `venuebox doctor`: nothing is changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from appliance.clock import Clock, ZoneDatabase
from appliance.store.connection import Reader, open_connection

_MOST = 20


@dataclass(frozen=True, slots=True)
class DeliveryHealth:
    """How webhooks fare. Instants in ms since 1970; `oldest_pending` None when none waits."""

    dead: int
    pending: int
    oldest_pending: int | None


@contextmanager
def opened_for_reading(path: Path, clock: Clock, zones: ZoneDatabase) -> Iterator[Reader]:
    """A read-only snapshot of a database, whether or not a box writes to it."""
    connection = open_connection(path, writable=False)
    try:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        yield Reader(connection, clock, zones)
    finally:
        connection.close()


def read_schema(reader: Reader) -> int:
    """The number of the file's schema."""
    return int(reader.value("PRAGMA user_version"))


def list_damage(reader: Reader) -> list[str]:
    """What SQLite finds wrong with the file: nothing in a sound one."""
    found = [str(row[0]) for row in reader.rows(f"PRAGMA quick_check({_MOST})")]
    damage = [] if found == ["ok"] else found
    orphans = {str(row[0]) for row in reader.rows("PRAGMA foreign_key_check")}
    return damage + [f"rows of {table} that belong to nothing" for table in sorted(orphans)]


def find_newest_instant(reader: Reader) -> int | None:
    """The latest instant that the box has written down, in ms since 1970."""
    sql = """SELECT max(at) FROM (
                 SELECT max(at) AS at FROM scan UNION ALL
                 SELECT max(at) FROM history UNION ALL
                 SELECT max(at) FROM heartbeat UNION ALL
                 SELECT max(created_at) FROM signing_key)"""
    newest: int | None = reader.value(sql)
    return newest


def read_delivery_health(reader: Reader, since: int) -> DeliveryHealth:
    """Deliveries that died since `since`, and those that wait."""
    sql = "SELECT count(*) FROM delivery WHERE state = 'dead' AND finished_at >= :since"
    dead = reader.value(sql, {"since": since})
    sql = """SELECT count(*), min(e.occurred_at)
             FROM delivery d JOIN event e ON e.seq = d.event_seq WHERE d.state = 'pending'"""
    row = reader.row(sql)
    pending, oldest = row or (0, None)
    return DeliveryHealth(dead, pending, oldest)


def find_signing_key_age(reader: Reader) -> int | None:
    """How old the key that signs guest passes is, in ms; None when there is none."""
    sql = "SELECT created_at FROM signing_key WHERE retired_at IS NULL"
    created: int | None = reader.value(sql)
    return None if created is None else reader.now - created


def list_terminal_names(reader: Reader) -> set[str]:
    """The ids and the names of terminals that were not revoked."""
    rows = reader.rows("SELECT id, name FROM terminal WHERE revoked_at IS NULL")
    return {text for row in rows for text in row}
