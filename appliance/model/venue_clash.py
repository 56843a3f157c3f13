"""A clash: a reservation still to come that a change of the venue would leave without its due."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from appliance.model.evening import find_slot, interval
from appliance.model.venue import Closing, Slot, Table, fingerprint

OVER_CAPACITY = "over_capacity"
TABLE_RETIRED = "table_retired"
SLOT_GONE = "slot_gone"
CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Coming:
    """What is to be kept of a reservation; `starts` as `reservation.starts` (minutes)."""

    id: str
    date: str
    slot: str | None
    starts: int
    table_id: str
    table_number: str
    guests: int
    customer_name: str | None


@dataclass(frozen=True, slots=True)
class Clash:
    """`kind` is over_capacity, table_retired, slot_gone or closed."""

    kind: str
    reservation: Coming


Clashes = tuple[Clash, ...]


def clash_mark(clashes: Clashes) -> str:
    """What "save all the same" says of the list that its author read."""
    return fingerprint([(clash.kind, clash.reservation.id) for clash in clashes])


def table_clashes(coming: Iterable[Coming], before: Table, after: Table) -> Clashes:
    """Who sits at a table that seats fewer than before, or may not be booked any more."""
    found = []
    for one in coming:
        if one.table_id != before.id:
            continue
        if before.bookable and not after.bookable:
            found.append(Clash(TABLE_RETIRED, one))
        elif after.capacity_max < one.guests <= before.capacity_max:
            found.append(Clash(OVER_CAPACITY, one))
    return tuple(found)


def slot_clashes(
    coming: Iterable[Coming], before: Iterable[Slot], after: Iterable[Slot]
) -> Clashes:
    """Whose slot is offered no more on that weekday."""
    before, after = tuple(before), tuple(after)

    def is_gone(one: Coming) -> bool:
        if one.slot is None:
            return False
        day = date.fromisoformat(one.date)
        was_offered = find_slot(before, one.slot, day) is not None
        return was_offered and find_slot(after, one.slot, day) is None

    return tuple(Clash(SLOT_GONE, one) for one in coming if is_gone(one))


def closing_clashes(coming: Iterable[Coming], closing: Closing) -> Clashes:
    """Who is expected while the venue is closed."""
    return tuple(Clash(CLOSED, one) for one in coming if closing.holds(one.date))


def find_shifted(
    coming: Iterable[Coming], slots: Iterable[Slot], evening_ends_at: str
) -> frozenset[str]:
    """Reservations whose slot would begin on the other side of midnight from where they hold it.

    They would not be in the way of a second one for the same table and slot.
    """
    slots = tuple(slots)

    def is_shifted(one: Coming) -> bool:
        if one.slot is None:
            return False
        slot = find_slot(slots, one.slot, date.fromisoformat(one.date))
        return slot is not None and interval(slot, evening_ends_at)[0] != one.starts

    return frozenset(one.id for one in coming if is_shifted(one))


def overlapping_slots(slots: Iterable[Slot], evening_ends_at: str) -> list[tuple[Slot, Slot]]:
    """Pairs that share a weekday and a minute: a table taken in one is taken in the other."""
    slots = sorted(slots, key=lambda slot: interval(slot, evening_ends_at))
    return [
        (one, other)
        for number, one in enumerate(slots)
        for other in slots[number + 1 :]
        if set(one.days_of_week) & set(other.days_of_week)
        and interval(other, evening_ends_at)[0] < interval(one, evening_ends_at)[1]
    ]


def standing_clashes(
    coming: Iterable[Coming], tables: Iterable[Table],
    slots: Iterable[Slot], closings: Iterable[Closing],
) -> Clashes:  # fmt: skip
    """Who does not fit the venue as it is: kept all the same when it was changed."""
    by_id = {table.id: table for table in tables}
    slots, closings = tuple(slots), tuple(closings)

    def kind_of(one: Coming) -> str | None:
        table = by_id[one.table_id]
        if any(closing.holds(one.date) for closing in closings):
            return CLOSED
        if one.slot and find_slot(slots, one.slot, date.fromisoformat(one.date)) is None:
            return SLOT_GONE
        if not table.bookable:
            return TABLE_RETIRED
        return OVER_CAPACITY if one.guests > table.capacity_max else None

    kinds = ((kind_of(one), one) for one in coming)
    return tuple(Clash(kind, one) for kind, one in kinds if kind is not None)
