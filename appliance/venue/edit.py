"""Edit the venue's rules, tables, slots and closings.

If an edit would deprive future reservations of their table, their slot or enough seats, or would
close the venue on their dates, it changes nothing and returns these reservations as clashes. To
make the edit anyway, call the function again with `accepted` set to the `clash_mark` of these
clashes. An edit that takes effect returns no clashes.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from appliance.core.errors import (
    ChangedMeanwhile,
    InvalidDateRange,
    NotFound,
    SlotIsHeld,
    field_invalid,
)
from appliance.core.phone_numbers import spell_number
from appliance.core.text import fold
from appliance.database.connection import Reader, Transaction
from appliance.outbox import VENUE_UPDATED, VenueChanged, announce
from appliance.venue.clashes import (
    Clashes,
    clash_mark,
    find_clashes,
    find_shifted,
    list_future_reservations,
)
from appliance.venue.model import (
    BOOKING_HORIZON_DAYS,
    Closing,
    Slot,
    Table,
    Venue,
    find_tonight,
    fingerprint,
    get_slot,
    get_table,
    get_venue,
    list_closings,
    list_slots,
    list_tables,
    list_used_tables,
)
from appliance.venue.venue_file import (
    UNFURNISHED,
    VenueFile,
    check_evenings,
    check_slot,
    check_table,
    check_venue,
)

P = ParamSpec("P")
R = TypeVar("R")


def announced(
    edit: Callable[Concatenate[Transaction, P], R],
) -> Callable[Concatenate[Transaction, P], R]:
    """Queue the event `venue.updated` if an edit has changed what partners read of the venue."""

    @wraps(edit)
    def run(tx: Transaction, /, *args: P.args, **kwargs: P.kwargs) -> R:
        before = _seen_by_partners(tx)
        result = edit(tx, *args, **kwargs)
        if before is not None and _seen_by_partners(tx) != before:
            announce(tx, VENUE_UPDATED, None)
        return result

    return run


def _seen_by_partners(reader: Reader) -> object:
    """Return the venue, its tables, slots and closing days, or None if the box has no venue."""
    if reader.row("SELECT 1 FROM venue") is None:
        return None
    closings = [(closing.first, closing.last) for closing in list_closings(reader)]
    return get_venue(reader), list_tables(reader), list_slots(reader), closings


@announced
def close_days(
    tx: Transaction, first: date, last: date, reason: str, accepted: str | None = None
) -> Clashes:
    """Close the venue from `first` to `last`, both included.

    If the days have reservations, change nothing and return these reservations as clashes, unless
    `accepted` is their mark. Raises InvalidDateRange if `last` is before `first`, before tonight or
    more than 730 days ahead, and ValidationError if one of the days is already closed: closings
    never overlap, so that opening one opens its days.
    """
    tonight = find_tonight(tx)
    if last < max(first, tonight) or (last - tonight).days > BOOKING_HORIZON_DAYS:
        raise InvalidDateRange(field="first" if first == last else "last")
    closing = Closing(tx.new_id(), first.isoformat(), last.isoformat(), reason)
    present = list_closings(tx)
    if any(one.first <= closing.last and closing.first <= one.last for one in present):
        raise field_invalid("first", "one of these days is already closed: see the list above.")
    clashes = _new_clashes(tx, accepted, closings=[*present, closing])
    if clashes:
        return clashes
    _store_closing(tx, closing)
    return ()


def _store_closing(tx: Transaction, closing: Closing) -> None:
    days = {"first_day": closing.first, "last_day": closing.last}
    tx.insert("closing_day", {"id": closing.id, **days, "reason": closing.reason})


@announced
def open_days(tx: Transaction, closing_id: str) -> None:
    """Delete a closing. Raises NotFound if the id is unknown."""
    if not tx.execute("DELETE FROM closing_day WHERE id = :id", {"id": closing_id}):
        raise NotFound


def _new_clashes(tx: Transaction, accepted: str | None, **changed: Sequence[Any]) -> Clashes:
    """Return the clashes that a change to the venue would add, or none if `accepted` is their mark.

    `changed` contains the keyword arguments for `find_clashes`.
    """
    present = set(find_clashes(tx))
    clashes = tuple(clash for clash in find_clashes(tx, **changed) if clash not in present)
    return () if clash_mark(clashes) == accepted else clashes


def _check_shifts(
    tx: Transaction, slots: Sequence[Slot] | None = None, evening_ends_at: str | None = None
) -> None:
    """Raise SlotIsHeld if new slots or a new evening end would move a booked slot across midnight.

    Existing reservations keep their stored start time. After such a change, they would not block
    their table for the slot, so the table could be booked twice. Call this before the change. Pass
    None for an argument that does not change.
    """
    present, ends_at = list_slots(tx), get_venue(tx).evening_ends_at
    coming = list_future_reservations(tx, find_tonight(tx).isoformat())
    after = find_shifted(coming, present if slots is None else slots, evening_ends_at or ends_at)
    if after - find_shifted(coming, present, ends_at):
        raise SlotIsHeld


_TABLE = tuple(field.name for field in fields(Table) if field.name != "id")
_VENUE = tuple(field.name for field in fields(Venue) if field.name != "id")


@announced
def apply_venue(tx: Transaction, file: VenueFile, *, venue_id: str | None = None) -> str:
    """Create the venue from `file`, or update it to match `file`. Return the venue's id.

    Reservations do not change. Tables are matched by number. Tables that are not in the file
    become unbookable but are not deleted. A new venue gets the id `venue_id`, or a generated
    id if `venue_id` is None. Raises SlotIsHeld if a booked slot would move across midnight.
    """
    applied_id: str | None = tx.value("SELECT id FROM venue")
    if applied_id is None:
        applied_id = venue_id or tx.new_id()
        tx.insert("venue", {"id": applied_id, **_venue_columns(file)})
    else:
        _check_shifts(tx, file.slots, file.evening_ends_at)
        _update_venue(tx, file)
    _apply_tables(tx, file.tables)
    _apply_slots(tx, file.slots)
    return applied_id


def _apply_tables(tx: Transaction, tables: Sequence[Table]) -> None:
    """Insert or update `tables`, matched by number.

    All other tables become unbookable and move to the end of the table list.
    """
    known = {fold(table.number): table.id for table in list_tables(tx)}
    for position, table in enumerate(tables):
        values = {"position": position, **_table_columns(table)}
        if id_ := known.get(fold(table.number)):
            tx.update("venue_table", id_, **values)
        else:
            tx.insert("venue_table", {"id": tx.new_id(), **values})
    sql = """UPDATE venue_table SET bookable = 0, position = :after
             WHERE number NOT IN (SELECT value FROM json_each(:numbers))"""
    numbers = json.dumps([table.number for table in tables])
    tx.execute(sql, {"after": len(tables), "numbers": numbers})


def _update_venue(tx: Transaction, venue: Venue) -> None:
    """Update all columns of the venue's row except the id."""
    changes = ", ".join(f"{name} = :{name}" for name in _VENUE)
    tx.execute(f"UPDATE venue SET {changes}", _venue_columns(venue))  # noqa: S608 - constants
    tx.notices.append(VenueChanged())


def _table_columns(table: Table) -> dict[str, Any]:
    """Return a table's column values, without id and position."""
    return {name: getattr(table, name) for name in _TABLE} | {"bookable": int(table.bookable)}


def _venue_columns(venue: Venue) -> dict[str, Any]:
    policies = json.dumps(venue.policies, ensure_ascii=False) if venue.policies else None
    values = {name: getattr(venue, name) for name in _VENUE}
    if len(venue.phone_numbers) == 1:  # staff then see the number that is dialled
        values["phone"] = spell_number(venue.phone_numbers[0])
    values = {name: int(each) if isinstance(each, bool) else each for name, each in values.items()}
    return {**values, "policies": policies}


def _apply_slots(tx: Transaction, slots: Sequence[Slot]) -> None:
    """Replace all slots. A slot with the same start and days as an old slot keeps its id."""
    known = {(slot.start, slot.days_of_week): slot.id for slot in list_slots(tx)}
    tx.execute("DELETE FROM slot")
    for position, slot in enumerate(slots):
        slot_id = known.get((slot.start, slot.days_of_week)) or tx.new_id()
        tx.insert("slot", _slot_row(slot) | {"id": slot_id, "position": position})


def _slot_row(slot: Slot) -> dict[str, Any]:
    """Return a slot's column values, without its position."""
    return asdict(slot) | {"days_of_week": json.dumps(slot.days_of_week)}


@announced
def edit_venue(tx: Transaction, seen: str, wished: Venue) -> None:
    """Replace the venue's data, except its id, with `wished`.

    `seen` is the `fingerprint` of the venue as the form showed it. Raises ChangedMeanwhile if the
    venue has changed since then, ValidationError if a field is invalid, and SlotIsHeld if the new
    evening end would move a booked slot across midnight.
    """
    stored = get_venue(tx)
    _check_seen(stored, seen)
    check_venue(wished, tx.zones)
    if wished.evening_ends_at != stored.evening_ends_at:
        check_evenings(list_slots(tx), wished.evening_ends_at, "evening_ends_at")
    _check_shifts(tx, evening_ends_at=wished.evening_ends_at)
    _update_venue(tx, wished)


@announced
def add_tables(tx: Transaction, entries: Sequence[Table]) -> list[str]:
    """Add tables at the end of the list and return their ids.

    Raises ValidationError if a field is invalid or a table's number is already in use.
    """
    tables = list_tables(tx)
    taken = {table.number for table in tables}
    ids = []
    for position, entry in enumerate(entries, len(tables)):
        check_table(entry, taken)
        taken.add(entry.number)
        ids.append(tx.new_id())
        tx.insert("venue_table", {"id": ids[-1], "position": position, **_table_columns(entry)})
    _store_order(tx, [table.id for table in tables] + ids)
    return ids


@announced
def edit_table(
    tx: Transaction, table_id: str, seen: str, entry: Table, accepted: str | None = None
) -> Clashes:
    """Change a table. If this would cause clashes, change nothing and return the clashes.

    `seen` is the `fingerprint` of the table as the form showed it. Raises NotFound if the id is
    unknown, ChangedMeanwhile if the table has changed since then, and ValidationError if a field is
    invalid.
    """
    _check_seen(get_table(tx, table_id), seen)
    others = [other for other in list_tables(tx) if other.id != table_id]
    check_table(entry, {other.number for other in others})
    clashes = _new_clashes(tx, accepted, tables=[*others, replace(entry, id=table_id)])
    if not clashes:
        tx.update("venue_table", table_id, **_table_columns(entry))
    return clashes


@announced
def remove_table(tx: Transaction, table_id: str, seen: str) -> None:
    """Delete a table.

    Raises NotFound if the id is unknown, ChangedMeanwhile if the table has changed since the form
    showed it, and ValidationError if the table has ever been booked.
    """
    table = get_table(tx, table_id)
    _check_seen(table, seen)
    if table_id in list_used_tables(tx):
        raise field_invalid("number", "this table has reservations; make it unbookable instead.")
    tx.execute("DELETE FROM venue_table WHERE id = :id", {"id": table_id})
    _store_order(tx, [other.id for other in list_tables(tx)])


@announced
def order_tables(tx: Transaction, seen: str, ids: Sequence[str]) -> None:
    """Put the tables in the order of `ids`, which must contain the id of every table.

    `seen` is the fingerprint of the order that the form showed. Raises ChangedMeanwhile if the
    order or the set of tables has changed since then.
    """
    present = [table.id for table in list_tables(tx)]
    if fingerprint(present) != seen or sorted(ids) != sorted(present):
        raise ChangedMeanwhile
    _store_order(tx, ids)


@announced
def move_table(tx: Transaction, table_id: str, steps: int) -> None:
    """Move a table down the list by `steps` places, or up if `steps` is negative.

    Raises NotFound if the id is unknown.
    """
    get_table(tx, table_id)
    ids = [table.id for table in list_tables(tx)]
    place = ids.index(table_id)
    ids.insert(min(max(place + steps, 0), len(ids) - 1), ids.pop(place))
    _store_order(tx, ids)


@dataclass(frozen=True, slots=True)
class Furniture:
    """The venue with its rules, tables, slots and closings."""

    venue: Venue
    tables: tuple[Table, ...]
    slots: tuple[Slot, ...]
    closings: tuple[Closing, ...]


def read_furniture(reader: Reader) -> Furniture:
    """Return the venue with its rules, tables, slots and closings."""
    venue, tables, slots = get_venue(reader), list_tables(reader), list_slots(reader)
    return Furniture(venue, tuple(tables), tuple(slots), tuple(list_closings(reader)))


@announced
def copy_furniture(tx: Transaction, live: Furniture) -> None:
    """Make the test environment's venue the same as the live one's, but always open for tests.

    Tables are matched by number. Tables that are not in `live` are deleted, or become unbookable
    if they have ever been booked. Clashes are not checked, because no real guest can lose a table.
    """
    status = "inactive" if live.venue.name == UNFURNISHED.name else "active"
    own = get_venue(tx)
    wished = replace(live.venue, id=own.id, status=status)
    if wished != own:  # at a start it rarely is, and writing it reads its phone numbers
        _update_venue(tx, wished)
    _apply_tables(tx, live.tables)
    _apply_slots(tx, live.slots)
    tx.execute("DELETE FROM closing_day")
    for closing in live.closings:
        _store_closing(tx, closing)
    numbers = {table.number for table in live.tables}
    used = list_used_tables(tx)
    for table in list_tables(tx):
        if table.number not in numbers and table.id not in used:
            tx.execute("DELETE FROM venue_table WHERE id = :id", {"id": table.id})


@announced
def add_slot(tx: Transaction, entry: Slot) -> str:
    """Add a slot at the end of the list and return its id.

    Raises ValidationError if a field is invalid, another slot starts at the same time on the same
    weekday, or a slot would run into one of the next evening; and SlotIsHeld if a booked slot would
    move across midnight.
    """
    slots = list_slots(tx)
    slot = replace(entry, id=tx.new_id())
    check_slot(slot, slots)
    check_evenings([*slots, slot], get_venue(tx).evening_ends_at, "end", slot)
    _check_shifts(tx, [*slots, slot])
    tx.insert("slot", _slot_row(slot) | {"position": len(slots)})
    return slot.id


@announced
def edit_slot(
    tx: Transaction, slot_id: str, seen: str, entry: Slot, accepted: str | None = None
) -> Clashes:
    """Change a slot. If this would cause clashes, change nothing and return the clashes.

    `seen` is the `fingerprint` of the slot as the form showed it. Raises NotFound if the id is
    unknown, ChangedMeanwhile if the slot has changed since then, and ValidationError and SlotIsHeld
    in the same cases as `add_slot`.
    """
    _check_seen(get_slot(tx, slot_id), seen)
    slot = replace(entry, id=slot_id)
    others = [other for other in list_slots(tx) if other.id != slot_id]
    check_slot(slot, others)
    check_evenings([*others, slot], get_venue(tx).evening_ends_at, "end", slot)
    _check_shifts(tx, [*others, slot])
    clashes = _new_clashes(tx, accepted, slots=[*others, slot])
    if not clashes:
        tx.update("slot", slot_id, **_slot_row(slot))
    return clashes


@announced
def remove_slot(tx: Transaction, slot_id: str, seen: str, accepted: str | None = None) -> Clashes:
    """Delete a slot. If this would cause clashes, change nothing and return the clashes.

    `seen` is the `fingerprint` of the slot as the form showed it. Raises NotFound if the id is
    unknown, ChangedMeanwhile if the slot has changed since then, and SlotIsHeld if a booked slot
    would move across midnight.
    """
    _check_seen(get_slot(tx, slot_id), seen)
    others = [other for other in list_slots(tx) if other.id != slot_id]
    _check_shifts(tx, others)
    clashes = _new_clashes(tx, accepted, slots=others)
    if not clashes:
        tx.execute("DELETE FROM slot WHERE id = :id", {"id": slot_id})
    return clashes


def _check_seen(present: object, seen: str) -> None:
    if fingerprint(present) != seen:
        raise ChangedMeanwhile


def _store_order(tx: Transaction, ids: Sequence[str]) -> None:
    """Set each table's position to its index in `ids`."""
    for position, table_id in enumerate(ids):
        sql = "UPDATE venue_table SET position = :position WHERE id = :id AND position <> :position"
        tx.execute(sql, {"position": position, "id": table_id})
