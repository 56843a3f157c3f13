"""The holds of tables: the rules for a place, the table `hold`, and short holds for partners.

A hold without a reservation is a row of `open_hold` and a row of `hold` for each of its tables.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import apsw
from msgspec import Struct

from appliance.api_keys import ApiKey
from appliance.core.errors import (
    DateOutOfRange,
    HoldExpired,
    NotFound,
    SlotEnded,
    TableNotBookable,
    TableNotFound,
    TableTaken,
    TooManyHolds,
    field_invalid,
)
from appliance.database.connection import Reader, Transaction
from appliance.outbox import HoldsChanged
from appliance.reservations.model import Reservation
from appliance.venue.model import (
    Table,
    check_seats,
    find_closure,
    find_table,
    get_offered_slot,
    get_table,
    get_venue,
    has_ended,
    interval,
    list_closings,
    may_be_booked,
    seat_together,
    tonight,
)

HOLD_SECONDS_MAX = 600
HOLDS_MAX = 20  # maximum number of open holds for each lineage
# A hold that expires later than it may was made before the clock was set back. It is over too.
_IS_OPEN = f"""(expires_at IS NULL
    OR expires_at BETWEEN :now + 1 AND :now + {HOLD_SECONDS_MAX * 1000})"""


class Place(Struct, frozen=True):
    """The tables, date, slot and number of guests. If `slot` is None, for the whole evening."""

    table_ids: tuple[str, ...]
    date: date
    slot: str | None
    guests: int


def name_table(number: int) -> str:
    """Return the member of a creation or a change that has the table at `number`, from 0."""
    return f"additionalTableIds[{number - 1}]" if number else "tableId"


def check_place(
    tx: Transaction, place: Place,
    *, by_staff: bool = False, over_capacity: bool = False, own: Reservation | None = None,
    named: Callable[[int], str] = name_table,
) -> tuple[int, int]:  # fmt: skip
    """Return the interval [starts, ends) of a place that may be taken, in minutes after midnight.

    Raises an error for the first of these conditions that is not met. It has the member of the
    body that `named` gives for the table at fault, where only one table can be:

    1. The venue is active and open that evening.
    2. Each table exists and is bookable, and their capacities together fit the number of guests
       (the capacity is not checked if `over_capacity` is True).
    3. The slot is offered on that weekday.
    4. The date is neither in the past nor more than 730 days ahead.
    5. The slot has not ended. This is not checked for staff.
    6. The tables are free.

    With `own`, the reservation that moves there, its own holds do not count, it may keep a table
    that is not bookable, and staff may move it to one. If it stays in its slot, it keeps its time,
    and conditions 3 to 5 are not checked; staff may then move it while the venue is closed.
    """
    venue, day = get_venue(tx), place.date.isoformat()
    closure = find_closure(venue, list_closings(tx), day)
    if closure is not None and not (by_staff and own is not None and own.date == day):
        raise closure
    kept = own.table_ids if own else ()
    tables = [
        _get_table(tx, id_, named(n), any_table=id_ in kept or (own is not None and by_staff))
        for n, id_ in enumerate(place.table_ids)
    ]
    if not over_capacity:
        check_seats(tables, place.guests, "guests")
    if own is not None and (own.date, own.slot) == (day, place.slot):
        starts, ends = own.starts, own.ends
    else:
        slot = None if place.slot is None else get_offered_slot(tx, place.slot, place.date)
        starts, ends = interval(slot, venue.evening_ends_at)
        zone = tx.zones.zone(venue.time_zone)
        if not may_be_booked(place.date, tonight(tx.now, zone, venue.evening_ends_at)):
            raise DateOutOfRange(field="date")
        if not by_staff and has_ended(slot, place.date, venue, zone, tx.now):
            raise SlotEnded(field="slot")
    for n, id_ in enumerate(place.table_ids):
        if is_held(tx, id_, day, starts, ends, own):
            raise TableTaken(field=named(n) if len(tables) > 1 else None)
    return starts, ends


def _get_table(tx: Transaction, table_id: str, field: str, *, any_table: bool) -> Table:
    table = find_table(tx, table_id)
    if table is None:
        raise TableNotFound(field=field)
    if not (table.bookable or any_table):
        raise TableNotBookable(field=field)
    return table


def get_seat(reader: Reader, reservation: Reservation) -> Table:
    """Return the reservation's table; those of a group as one."""
    return seat_together([get_table(reader, id_) for id_ in reservation.table_ids])


class Hold(NamedTuple):
    """A table that is held on a date, in [starts, ends), which are minutes after midnight.

    `reservation_seq` is None for a hold without a reservation.
    """

    table_id: str
    starts: int
    ends: int
    source: str
    reservation_seq: int | None
    date: str = ""


def list_holds(reader: Reader, first: str, last: str | None = None) -> list[Hold]:
    """Return the holds from `first` to `last` (YYYY-MM-DD, default: `first`), both included.

    Those of the oldest reservation come first.
    """
    sql = f"""SELECT table_id, starts, ends, source, reservation_seq, date FROM hold
              WHERE date BETWEEN :first AND :last AND {_IS_OPEN}
              ORDER BY reservation_seq"""  # noqa: S608
    days = {"first": first, "last": last or first, "now": reader.now}
    return [Hold(*row) for row in reader.rows(sql, days)]


def is_held(
    reader: Reader, table_id: str, date: str, starts: int, ends: int,
    own: Reservation | None = None,
) -> bool:  # fmt: skip
    """Whether anything but `own` holds the table on `date` at any time in [starts, ends).

    `starts` and `ends` are in minutes after midnight.
    """
    sql = f"""SELECT 1 FROM hold
              WHERE date = :date AND table_id = :table_id AND starts < :ends AND :starts < ends
                  AND {_IS_OPEN} AND reservation_seq IS NOT :own LIMIT 1"""  # noqa: S608
    bound = {"date": date, "table_id": table_id, "starts": starts, "ends": ends, "now": reader.now}
    return reader.row(sql, {**bound, "own": own.seq if own else 0}) is not None


def hold_tables(
    tx: Transaction, table_ids: Sequence[str], day: str, hours: tuple[int, int], source: str,
    *, seq: int | None = None, expires_at: int | None = None,
) -> None:  # fmt: skip
    """Hold the tables for the reservation `seq`, or until `expires_at`.

    Raises TableTaken if one of them is held at that time.
    """
    row = {"date": day, "starts": hours[0], "ends": hours[1], "source": source,
           "reservation_seq": seq, "expires_at": expires_at}  # fmt: skip
    for table_id in table_ids:
        if not _hold(tx, {**row, "table_id": table_id}):
            release_expired(tx)
            if not _hold(tx, {**row, "table_id": table_id}):
                raise TableTaken


def _hold(tx: Transaction, row: dict[str, object]) -> bool:
    """Insert a row of `hold`. Return False if another one overlaps it."""
    try:
        tx.insert("hold", row)
    except apsw.ConstraintError as error:
        if "table_taken" in str(error) or "hold.date, hold.table_id" in str(error):
            return False
        raise
    return True


def free_tables(tx: Transaction, reservation: Reservation) -> None:
    """Delete the reservation's holds."""
    sql = "DELETE FROM hold WHERE date = :date AND reservation_seq = :seq"
    tx.execute(sql, {"date": reservation.date, "seq": reservation.seq})


@dataclass(frozen=True, slots=True)
class OpenHold:
    """A hold without a reservation. `expires_at` is in ms since 1970."""

    id: str
    expires_at: int


def open_hold(tx: Transaction, key: ApiKey, place: Place, seconds: int) -> OpenHold:
    """Hold the tables for `seconds`. They then count as reserved by a partner.

    Raises the errors of `check_place`, and TooManyHolds if the lineage has 20 open holds.
    """
    sql = f"SELECT count(*) FROM open_hold WHERE lineage = :lineage AND {_IS_OPEN}"  # noqa: S608
    hours = check_place(tx, place, named="tableIds[{}]".format)
    if tx.value(sql, {"lineage": key.lineage, "now": tx.now}) >= HOLDS_MAX:
        raise TooManyHolds(largest=HOLDS_MAX)
    made, day = OpenHold(tx.new_id(), tx.now + seconds * 1000), place.date.isoformat()
    hold_tables(tx, place.table_ids, day, hours, "partner", expires_at=made.expires_at)
    tx.insert(
        "open_hold",
        {"id": made.id, "lineage": key.lineage, "table_ids": json.dumps(place.table_ids),
         "date": day, "slot": place.slot, "starts": hours[0], "expires_at": made.expires_at},
    )  # fmt: skip
    tx.notices.append(HoldsChanged())
    return made


def release_hold(tx: Transaction, key: ApiKey, hold_id: str) -> None:
    """Release a hold. Raises NotFound if it has expired or belongs to another lineage."""
    if not _release(tx, f"id = :id AND lineage = :lineage AND {_IS_OPEN}", id=hold_id,
                    lineage=key.lineage):  # fmt: skip
        raise NotFound


def take_hold(tx: Transaction, key: ApiKey, hold_id: str, place: Place) -> None:
    """Release a hold for the reservation that takes its place.

    Raises HoldExpired if it has expired or is unknown, and ValidationError for another place.
    """
    sql = f"""SELECT table_ids, date, slot FROM open_hold
              WHERE id = :id AND lineage = :lineage AND {_IS_OPEN}"""  # noqa: S608
    row = tx.row(sql, {"id": hold_id, "lineage": key.lineage, "now": tx.now})
    if row is None:
        raise HoldExpired(field="holdId")
    if (set(json.loads(row[0])), *row[1:]) != (
        set(place.table_ids), place.date.isoformat(), place.slot,
    ):  # fmt: skip
        raise field_invalid(
            "holdId", "it holds other tables, another date or another slot; send the same ones."
        )
    _release(tx, "id = :id", id=hold_id)


def release_expired(tx: Transaction) -> None:
    """Release the expired holds."""
    _release(tx, f"NOT {_IS_OPEN}")


def find_next_expiry(reader: Reader) -> int | None:
    """Return when the next hold expires, in ms since 1970, or None if there is no hold."""
    sql = f"SELECT min(iif({_IS_OPEN}, expires_at, 0)) FROM open_hold"  # noqa: S608
    due: int | None = reader.value(sql, {"now": reader.now})
    return due


def _release(tx: Transaction, where: str, **bound: object) -> int:
    sql = f"""DELETE FROM open_hold WHERE {where} RETURNING date, table_ids, starts"""  # noqa: S608
    released = list(tx.rows(sql, {**bound, "now": tx.now}))
    tx.execute_each(
        """DELETE FROM hold WHERE date = ? AND table_id IN (SELECT value FROM json_each(?))
               AND starts = ? AND reservation_seq IS NULL""",
        released,
    )
    if released:
        tx.notices.append(HoldsChanged())
    return len(released)
