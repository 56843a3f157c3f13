"""Future reservations, and those that a change of the venue would leave without a place."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from appliance.database.connection import Reader
from appliance.venue.model import (
    Closing,
    Slot,
    Table,
    find_slot,
    find_tonight,
    fingerprint,
    interval,
    list_closings,
    list_slots,
    list_tables,
    seat_together,
)


@dataclass(frozen=True, slots=True)
class Coming:
    """A future reservation to check for clashes. `starts` is in minutes after midnight."""

    id: str
    date: str
    slot: str | None
    starts: int
    table_ids: tuple[str, ...]
    table_number: str
    guests: int
    customer_name: str | None


@dataclass(frozen=True, slots=True)
class Clash:
    """A reservation affected by a change to the venue.

    `kind` is `over_capacity`, `table_retired`, `slot_gone` or `closed`.
    """

    kind: str
    reservation: Coming


Clashes = tuple[Clash, ...]


def clash_mark(clashes: Clashes) -> str:
    """Return a fingerprint of the clashes. To accept them, pass it to the edit as `accepted`."""
    return fingerprint([(clash.kind, clash.reservation.id) for clash in clashes])


def find_clashes(
    reader: Reader, *, tables: Sequence[Table] | None = None, slots: Sequence[Slot] | None = None,
    closings: Sequence[Closing] | None = None,
) -> Clashes:  # fmt: skip
    """Return the clashes between the future reservations and the venue.

    There are some if an earlier edit was made despite its clashes. With `tables`, `slots` or
    `closings`, return the clashes that would exist if the venue had these instead of its own.
    """
    by_id = {table.id: table for table in tables or list_tables(reader)}
    offered = list_slots(reader) if slots is None else slots
    closed = list_closings(reader) if closings is None else closings

    def kinds_of(reservation: Coming) -> Iterator[str]:
        table = seat_together([by_id[id_] for id_ in reservation.table_ids])
        if any(closing.holds(reservation.date) for closing in closed):
            yield "closed"
        if reservation.slot and _find_booked(offered, reservation) is None:
            yield "slot_gone"
        if not table.bookable:
            yield "table_retired"
        elif reservation.guests > table.capacity_max:
            yield "over_capacity"

    coming = list_future_reservations(reader, find_tonight(reader).isoformat())
    return tuple(Clash(kind, found) for found in coming for kind in kinds_of(found))


def _find_booked(slots: Iterable[Slot], reservation: Coming) -> Slot | None:
    """Return the reservation's slot if `slots` offers it on the reservation's date, or None."""
    if reservation.slot is None:
        return None
    return find_slot(slots, reservation.slot, date.fromisoformat(reservation.date))


def find_shifted(
    coming: Iterable[Coming], slots: Sequence[Slot], evening_ends_at: str
) -> frozenset[str]:
    """Return the ids of reservations whose stored `starts` would differ from their slot's start.

    Such a reservation would not block its table for the slot, so the table could be booked twice.
    """
    booked = ((found, _find_booked(slots, found)) for found in coming)
    return frozenset(
        found.id
        for found, slot in booked
        if slot is not None and interval(slot, evening_ends_at)[0] != found.starts
    )


def list_future_reservations(reader: Reader, since: str) -> list[Coming]:
    """Return the reservations on or after `since` (YYYY-MM-DD) that are still active.

    Cancelled, declined and completed reservations are not included. The result is sorted by date,
    slot and time of creation.
    """
    sql = """SELECT r.table_id, r.table_ids, r.id, r.date, r.slot, r.starts, t.number, r.guests,
                    r.customer_name
             FROM reservation r JOIN venue_table t ON t.id = r.table_id
             WHERE r.date >= :since AND r.status NOT IN ('cancelled', 'declined', 'completed')
             ORDER BY r.date, r.slot, r.created_at, r.id"""
    return [
        Coming(id_, day, slot, starts, tuple(json.loads(group)) if group else (first,), *who)
        for first, group, id_, day, slot, starts, *who in reader.rows(sql, {"since": since})
    ]
