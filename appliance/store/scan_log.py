"""The door log to read: the rows of `scan` with the names that are still stored."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from appliance.store.connection import Reader
from appliance.store.scans import _CHAINED as CHAINED
from appliance.store.scans import _START as START
from appliance.store.scans import _chain as follow

__all__ = ["CHAINED", "START", "LoggedScan", "Stretch", "follow", "list_log_keys", "list_scans",
           "list_types", "measure_stretch"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoggedScan:
    """A row of the door log: what its hash covers, in that order, and what is known beside it.

    Erased texts are None. `table`, `customer_name` and `access_code` are the reservation's.
    """

    chained: tuple[Any, ...]
    hash: bytes
    reason: str | None
    terminal: str
    staff: str | None
    table: str | None
    customer_name: str | None
    access_code: str | None

    @property
    def seq(self) -> int:
        """Its number in the log, from 1 on."""
        return int(self.chained[0])


@dataclass(frozen=True, slots=True)
class Stretch:
    """An unbroken part of the log. `previous` is the hash before it, None when it was erased."""

    first: int
    last: int
    previous: bytes | None

    @property
    def count(self) -> int:
        """How many rows it has."""
        return self.last - self.first + 1


def measure_stretch(reader: Reader, since: int | None, until: int | None) -> Stretch | None:
    """The stretch that holds every scan made in [since, until); None when there is none.

    A clock that was set back leaves scans of another time inside: the chain is not cut for them.
    """
    row = reader.row(
        """SELECT min(seq), max(seq) FROM scan
           WHERE at >= coalesce(:since, at) AND (:until IS NULL OR at < :until)""",
        {"since": since, "until": until},
    )
    if row is None or row[0] is None:
        return None
    previous: bytes | None = START
    if row[0] > 1:
        previous = reader.value("SELECT hash FROM scan WHERE seq = :seq", {"seq": row[0] - 1})
    return Stretch(row[0], row[1], previous)


def list_scans(reader: Reader, after: int, last: int, limit: int = -1) -> Iterator[LoggedScan]:
    """The rows after number `after` up to `last`, in their order, at most `limit`."""
    columns = ", ".join(f"s.{name}" for name in CHAINED)
    rows = reader.rows(
        f"""SELECT {columns}, s.hash, s.reason, t.name, staff.name, vt.name,
                   r.customer_name, r.access_code
            FROM scan s
            LEFT JOIN terminal t ON t.id = s.terminal_id
            LEFT JOIN staff ON staff.id = s.staff_id
            LEFT JOIN reservation r ON r.id = s.reservation_id
            LEFT JOIN venue_table vt ON vt.id = r.table_id
            WHERE s.seq > :after AND s.seq <= :last
            ORDER BY s.seq LIMIT :limit""",  # noqa: S608 - names of columns, from the code
        {"after": after, "last": last, "limit": limit},
    )
    for row in rows:
        yield LoggedScan(row[: len(CHAINED)], *row[len(CHAINED) :])


def list_types(reader: Reader) -> dict[str, str]:
    """The chained columns in their order, each with its type in SQLite."""
    types = {name: kind for _, name, kind, *_ in reader.rows("PRAGMA table_info(scan)")}
    return {name: types[name] for name in CHAINED}


def list_log_keys(reader: Reader) -> list[bytes]:
    """Every public key that may have signed an export, retired ones too."""
    return [row[0] for row in reader.rows("SELECT public_key FROM signing_key ORDER BY kid")]
