"""Questions about a database file and its rows, for `venuebox doctor`: nothing is changed."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from appliance.clock import Clock, ZoneDatabase
from appliance.store.connection import Reader, known, open_connection


@dataclass(frozen=True, slots=True)
class DeliveryHealth:
    """How webhooks fare. Instants in ms since 1970; `oldest_pending` None when none waits."""

    dead: int
    pending: int
    oldest_pending: int | None


@contextmanager
def opened_for_reading(path: Path, clock: Clock, zones: ZoneDatabase) -> Iterator[Reader]:
    """A read-only snapshot of a database, whether or not a box writes to it."""
    with closing(open_connection(path, writable=False)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        yield Reader(connection, clock, zones)


def read_schema(reader: Reader) -> int:
    """The number of the file's schema."""
    return int(reader.value("PRAGMA user_version"))


def read_delivery_health(reader: Reader, since: int) -> DeliveryHealth:
    """Deliveries that died since `since`, and those that wait."""
    sql = """SELECT (SELECT count(*) FROM delivery WHERE state = 'dead' AND finished_at >= :since),
                    count(*), min(e.occurred_at)
             FROM delivery d JOIN event e ON e.seq = d.event_seq WHERE d.state = 'pending'"""
    return known(reader.one(DeliveryHealth, sql, {"since": since}))


def find_signing_key_age(reader: Reader) -> int | None:
    """How old the key that signs guest passes is, in ms; None when there is none."""
    created = reader.value("SELECT created_at FROM signing_key WHERE retired_at IS NULL")
    return None if created is None else reader.now - created


def list_terminal_names(reader: Reader) -> set[str]:
    """The ids and the names of terminals that were not revoked."""
    rows = reader.rows("SELECT id, name FROM terminal WHERE revoked_at IS NULL")
    return {text for row in rows for text in row}
