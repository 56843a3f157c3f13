"""Edit the tables: add, change, put in order, retire. Nobody who booked loses a seat unseen.

Edits name the fingerprint of what their author saw. An edit that concerns reservations still to
come answers with them and changes nothing, until it is sent again with `accepted`, the
`clash_mark` of the very list that was shown.
"""

from collections.abc import Sequence
from typing import Any

from appliance.actions.apply_venue import apply_slots, apply_tables
from appliance.errors import field_invalid
from appliance.house_errors import ChangedMeanwhile
from appliance.model.venue import Slot, Table, fingerprint
from appliance.model.venue_clash import Clashes, clash_mark, table_clashes
from appliance.model.venue_file import SlotEntry, TableEntry
from appliance.store.connection import Transaction
from appliance.store.readings import find_tonight
from appliance.store.venue import get_table, list_coming, list_tables, list_used_tables


def add_tables(tx: Transaction, entries: Sequence[TableEntry]) -> list[str]:
    """Put new tables after the others; their ids. ValidationError for a number there is."""
    tables = list_tables(tx)
    taken = {table.number for table in tables}
    ids = []
    for place, entry in enumerate(entries, len(tables)):
        _check(entry, taken)
        taken.add(entry.number)
        table_id = tx.new_id()
        tx.insert("venue_table", {"id": table_id, "position": place, **_columns(entry)})
        ids.append(table_id)
    _number(tx, [table.id for table in tables] + ids)
    return ids


def edit_table(
    tx: Transaction, table_id: str, seen: str, entry: TableEntry, accepted: str | None = None
) -> Clashes:
    """Change a table. NotFound, ChangedMeanwhile, ValidationError; else as this file says."""
    table = get_table(tx, table_id)
    if fingerprint(table) != seen:
        raise ChangedMeanwhile
    _check(entry, {other.number for other in list_tables(tx) if other.id != table_id})
    after = _as_table(table_id, entry)
    clashes = table_clashes(list_coming(tx, find_tonight(tx).isoformat()), table, after)
    if clashes and clash_mark(clashes) != accepted:
        return clashes
    changes = ", ".join(f"{name} = :{name}" for name in _columns(entry))
    tx.execute(
        f"UPDATE venue_table SET {changes} WHERE id = :id",  # noqa: S608 - names from the code
        {"id": table_id, **_columns(entry)},
    )
    return ()


def remove_table(tx: Transaction, table_id: str, seen: str) -> None:
    """Take away a table that nobody ever booked; a used one can only be retired."""
    table = get_table(tx, table_id)
    if fingerprint(table) != seen:
        raise ChangedMeanwhile
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

    Tables that are not there become unbookable. For the test environment: nobody is asked.
    """
    apply_tables(tx, [_as_entry(table) for table in tables])
    apply_slots(tx, [SlotEntry(s.name, s.start, s.end, s.days_of_week) for s in slots])


def _check(entry: TableEntry, taken: set[str]) -> None:
    if entry.number in taken:
        raise field_invalid("number", "number_taken", number=entry.number)
    if not entry.number.strip() or not entry.name.strip() or not entry.type.strip():
        raise field_invalid("number", "table_texts")
    if not 1 <= entry.capacity_min <= entry.capacity_max:
        raise field_invalid("capacity_max", "capacities")


def _columns(entry: TableEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "name": entry.name,
        "capacity_min": entry.capacity_min,
        "capacity_max": entry.capacity_max,
        "minimum_spend": entry.minimum_spend,
        "type": entry.type,
        "bookable": int(entry.bookable),
    }


def _as_table(table_id: str, entry: TableEntry) -> Table:
    return Table(**{"id": table_id, **_columns(entry), "bookable": entry.bookable})


def _as_entry(table: Table) -> TableEntry:
    return TableEntry(
        table.number, table.name, table.capacity_min, table.capacity_max, table.minimum_spend,
        table.type, table.bookable,
    )  # fmt: skip


def _number(tx: Transaction, ids: Sequence[str]) -> None:
    """Positions 0, 1, … in the order of `ids`."""
    for position, table_id in enumerate(ids):
        tx.execute(
            "UPDATE venue_table SET position = :position WHERE id = :id AND position <> :position",
            {"position": position, "id": table_id},
        )
