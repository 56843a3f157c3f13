"""Apply a venue file: venue, tables and slots become what the file says."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from appliance.actions.keep_holds import keep_holds
from appliance.model.notices import VenueChanged
from appliance.model.venue import Slot, Table, Venue
from appliance.model.venue_file import VenueFile
from appliance.store.connection import Transaction

_TABLE = tuple(field.name for field in fields(Table) if field.name != "id")
_VENUE = tuple(field.name for field in fields(Venue) if field.name != "id")


def apply_venue(tx: Transaction, file: VenueFile, *, venue_id: str | None = None) -> str:
    """Make the venue match `file`; its id. Reservations keep what they were granted.

    Tables are matched by number; those missing from the file become unbookable, never
    deleted. `venue_id` is the id of a venue that is not here yet (a fresh one when None).
    SlotIsHeld when a slot that is booked would move across midnight.
    """
    with keep_holds(tx):
        applied_id = _apply_head(tx, file, venue_id)
        apply_tables(tx, file.tables)
        apply_slots(tx, file.slots)
    return applied_id


def apply_tables(tx: Transaction, tables: Sequence[Table]) -> None:
    """Make the tables match, by number: others stay, after these, and cannot be booked."""
    known: dict[str, str] = dict(tx.rows("SELECT number, id FROM venue_table"))
    for position, table in enumerate(tables):
        values = {"position": position, **table_columns(table)}
        if table.number in known:
            tx.update("venue_table", known[table.number], **values)
        else:
            tx.insert("venue_table", {"id": tx.new_id(), **values})
    sql = """UPDATE venue_table SET bookable = 0, position = :after
             WHERE number NOT IN (SELECT value FROM json_each(:numbers))"""
    numbers = json.dumps([table.number for table in tables])
    tx.execute(sql, {"after": len(tables), "numbers": numbers})


def update_venue(tx: Transaction, venue: Venue) -> None:
    """Make the venue's row say what `venue` says; its id stays."""
    changes = ", ".join(f"{name} = :{name}" for name in _VENUE)
    tx.execute(f"UPDATE venue SET {changes}", _venue_columns(venue))  # noqa: S608 - of the code


def table_columns(table: Table) -> dict[str, Any]:
    """A table as its row has it, without id and position."""
    return {name: getattr(table, name) for name in _TABLE} | {"bookable": int(table.bookable)}


def _venue_columns(venue: Venue) -> dict[str, Any]:
    policies = json.dumps(venue.policies, ensure_ascii=False) if venue.policies else None
    values = {name: getattr(venue, name) for name in _VENUE}
    return {**values, "auto_confirm": int(venue.auto_confirm), "policies": policies}


def _apply_head(tx: Transaction, file: VenueFile, venue_id: str | None) -> str:
    found = tx.value("SELECT id FROM venue")
    if found is None:
        fresh_id = venue_id or tx.new_id()
        tx.insert("venue", {"id": fresh_id, **_venue_columns(file)})
        return fresh_id
    update_venue(tx, file)
    tx.notices.append(VenueChanged())
    return str(found)


def apply_slots(tx: Transaction, slots: Sequence[Slot]) -> None:
    """A slot that starts as one before it, on the same days, is that one and keeps its id."""
    known = {
        (start, days): id_
        for id_, start, days in tx.rows("SELECT id, start, days_of_week FROM slot")
    }
    tx.execute("DELETE FROM slot")
    for position, slot in enumerate(slots):
        days = json.dumps(slot.days_of_week)
        slot_id = known.get((slot.start, days)) or tx.new_id()
        tx.insert("slot", slot_row(slot) | {"id": slot_id, "position": position})


def slot_row(slot: Slot) -> dict[str, Any]:
    """A slot as its row has it, without its position."""
    return asdict(slot) | {"days_of_week": json.dumps(slot.days_of_week)}
