"""Edit the venue: its rules, its tables, its slots. Nobody who booked loses a seat unseen.

Edits name the fingerprint of what their author saw. An edit that concerns reservations still to
come answers with them and changes nothing, until it is sent again with `accepted`, the
`clash_mark` of the very list that was shown. Reservations keep what they were granted.
"""

from collections.abc import Sequence
from dataclasses import replace

from appliance.actions.apply_venue import (
    apply_slots,
    apply_tables,
    slot_row,
    table_columns,
    update_venue,
)
from appliance.actions.keep_holds import keep_holds
from appliance.errors import field_invalid
from appliance.house_errors import ChangedMeanwhile, SlotIsHeld
from appliance.model.notices import VenueChanged
from appliance.model.venue import Slot, Table, Venue, fingerprint
from appliance.model.venue_clash import (
    Clashes,
    clash_mark,
    find_shifted,
    slot_clashes,
    table_clashes,
)
from appliance.model.venue_file import check_slot, check_table, check_venue
from appliance.store.connection import Transaction
from appliance.store.readings import find_tonight
from appliance.store.venue import (
    get_slot,
    get_table,
    get_venue,
    list_coming,
    list_slots,
    list_tables,
    list_used_tables,
)


def edit_venue(tx: Transaction, seen: str, wished: Venue) -> None:
    """Make the venue as wished, its id excepted.

    ChangedMeanwhile, ValidationError; SlotIsHeld when the evening would end on the other side
    of a slot that is booked.
    """
    _check_seen(get_venue(tx), seen)
    check_venue(wished, tx.zones)
    with keep_holds(tx):
        update_venue(tx, wished)
    tx.notices.append(VenueChanged())


def add_tables(tx: Transaction, entries: Sequence[Table]) -> list[str]:
    """Put new tables after the others; their ids. ValidationError for a number there is."""
    tables = list_tables(tx)
    taken = {table.number for table in tables}
    ids = []
    for place, entry in enumerate(entries, len(tables)):
        check_table(entry, taken)
        taken.add(entry.number)
        table_id = tx.new_id()
        tx.insert("venue_table", {"id": table_id, "position": place, **table_columns(entry)})
        ids.append(table_id)
    _number(tx, [table.id for table in tables] + ids)
    return ids


def edit_table(
    tx: Transaction, table_id: str, seen: str, entry: Table, accepted: str | None = None
) -> Clashes:
    """Change a table. NotFound, ChangedMeanwhile, ValidationError; else as this file says."""
    table = get_table(tx, table_id)
    _check_seen(table, seen)
    check_table(entry, {other.number for other in list_tables(tx) if other.id != table_id})
    after = replace(entry, id=table_id)
    clashes = table_clashes(list_coming(tx, find_tonight(tx).isoformat()), table, after)
    if clashes and clash_mark(clashes) != accepted:
        return clashes
    tx.update("venue_table", table_id, **table_columns(entry))
    return ()


def remove_table(tx: Transaction, table_id: str, seen: str) -> None:
    """Take away a table that nobody ever booked; a used one can only be retired."""
    table = get_table(tx, table_id)
    _check_seen(table, seen)
    if table_id in list_used_tables(tx):
        raise field_invalid("number", "table_used")
    tx.execute("DELETE FROM venue_table WHERE id = :id", {"id": table_id})
    _number(tx, [other.id for other in list_tables(tx)])


def order_tables(tx: Transaction, seen: str, ids: Sequence[str]) -> None:
    """Put all tables in that order. `seen` is the fingerprint of the ids as they stood."""
    present = [table.id for table in list_tables(tx)]
    if fingerprint(present) != seen or sorted(ids) != sorted(present):
        raise ChangedMeanwhile
    _number(tx, ids)


def move_table(tx: Transaction, table_id: str, steps: int) -> None:
    """Move a table so many places down, or up by a negative number; NotFound."""
    get_table(tx, table_id)
    ids = [table.id for table in list_tables(tx)]
    place = ids.index(table_id)
    ids.insert(min(max(place + steps, 0), len(ids) - 1), ids.pop(place))
    _number(tx, ids)


def copy_room(tx: Transaction, tables: Sequence[Table], slots: Sequence[Slot]) -> None:
    """Make the tables and slots those of another environment, matched by number.

    Other tables go, or become unbookable where they were booked. For the test environment: nobody
    is asked.
    """
    apply_tables(tx, tables)
    apply_slots(tx, slots)
    used, numbers = list_used_tables(tx), {table.number for table in tables}
    for table in list_tables(tx):
        if table.number not in numbers and table.id not in used:
            tx.execute("DELETE FROM venue_table WHERE id = :id", {"id": table.id})


def add_slot(tx: Transaction, entry: Slot) -> str:
    """A new slot after the others; its id. ValidationError when another starts then."""
    slots = list_slots(tx)
    slot = replace(entry, id=tx.new_id())
    check_slot(slot, slots)
    with keep_holds(tx):
        tx.insert("slot", slot_row(slot) | {"position": len(slots)})
    return slot.id


def edit_slot(
    tx: Transaction, slot_id: str, seen: str, entry: Slot, accepted: str | None = None
) -> Clashes:
    """Change a slot. NotFound, ChangedMeanwhile, ValidationError, SlotIsHeld."""
    _check_seen(get_slot(tx, slot_id), seen)
    slots, slot = list_slots(tx), replace(entry, id=slot_id)
    others = [other for other in slots if other.id != slot_id]
    check_slot(slot, others)
    clashes = _settle(tx, slots, [*others, slot], accepted)
    if not clashes:
        tx.update("slot", slot_id, **slot_row(slot))
    return clashes


def remove_slot(tx: Transaction, slot_id: str, seen: str, accepted: str | None = None) -> Clashes:
    """Offer a slot no more. NotFound, ChangedMeanwhile."""
    _check_seen(get_slot(tx, slot_id), seen)
    slots = list_slots(tx)
    others = [other for other in slots if other.id != slot_id]
    clashes = _settle(tx, slots, others, accepted)
    if not clashes:
        tx.execute("DELETE FROM slot WHERE id = :id", {"id": slot_id})
    return clashes


def _check_seen(thing: object, seen: str) -> None:
    if fingerprint(thing) != seen:
        raise ChangedMeanwhile


def _number(tx: Transaction, ids: Sequence[str]) -> None:
    """Positions 0, 1, … in the order of `ids`."""
    for position, table_id in enumerate(ids):
        sql = "UPDATE venue_table SET position = :position WHERE id = :id AND position <> :position"
        tx.execute(sql, {"position": position, "id": table_id})


def _settle(
    tx: Transaction, before: Sequence[Slot], after: Sequence[Slot], accepted: str | None
) -> Clashes:
    """What stands against it and was not accepted; SlotIsHeld for what cannot be."""
    coming, ends = list_coming(tx, find_tonight(tx).isoformat()), get_venue(tx).evening_ends_at
    if find_shifted(coming, after, ends) - find_shifted(coming, before, ends):
        raise SlotIsHeld
    clashes = slot_clashes(coming, before, after)
    return () if clash_mark(clashes) == accepted else clashes
