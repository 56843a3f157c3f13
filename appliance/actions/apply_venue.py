"""Apply a venue file: venue, tables and slots become what the file says."""

import json
from collections.abc import Sequence

from appliance.actions.keep_holds import keep_holds
from appliance.model.notices import VenueChanged
from appliance.model.venue_file import SlotEntry, TableEntry, VenueFile
from appliance.store.connection import Transaction


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


def apply_tables(tx: Transaction, tables: Sequence[TableEntry]) -> None:
    """Make the tables match, by number: others stay, unbookable."""
    for position, table in enumerate(tables):
        _apply_table(tx, position, table)
    _retire_tables(tx, tables)


def _apply_head(tx: Transaction, file: VenueFile, venue_id: str | None) -> str:
    values = {
        "name": file.name,
        "slug": file.slug,
        "status": file.status,
        "reservation_mode": file.reservation_mode,
        "auto_confirm": int(file.auto_confirm),
        "request_expiry_hours": file.request_expiry_hours,
        "currency": file.currency,
        "time_zone": file.time_zone,
        "evening_ends_at": file.evening_ends_at,
        "policies": json.dumps(file.policies, ensure_ascii=False) if file.policies else None,
        "address": file.address,
        "map_url": file.map_url,
    }
    found = tx.value("SELECT id FROM venue")
    if found is None:
        fresh_id = venue_id or tx.new_id()
        tx.insert("venue", {"id": fresh_id, **values})
        return fresh_id
    tx.execute(
        """UPDATE venue
           SET name = :name, slug = :slug, status = :status,
               reservation_mode = :reservation_mode, auto_confirm = :auto_confirm,
               request_expiry_hours = :request_expiry_hours, currency = :currency,
               time_zone = :time_zone, evening_ends_at = :evening_ends_at,
               policies = :policies, address = :address, map_url = :map_url""",
        values,
    )
    tx.notices.append(VenueChanged())
    return str(found)


def _apply_table(tx: Transaction, position: int, table: TableEntry) -> None:
    values = {
        "position": position,
        "number": table.number,
        "name": table.name,
        "capacity_min": table.capacity_min,
        "capacity_max": table.capacity_max,
        "minimum_spend": table.minimum_spend,
        "type": table.type,
        "bookable": int(table.bookable),
    }
    changed = tx.execute(
        """UPDATE venue_table
           SET position = :position, name = :name, capacity_min = :capacity_min,
               capacity_max = :capacity_max, minimum_spend = :minimum_spend, type = :type,
               bookable = :bookable
           WHERE number = :number""",
        values,
    )
    if not changed:
        tx.insert("venue_table", {"id": tx.new_id(), **values})


def _retire_tables(tx: Transaction, tables: Sequence[TableEntry]) -> None:
    """Tables that are not named stay, after the others, and cannot be booked."""
    tx.execute(
        """UPDATE venue_table SET bookable = 0, position = :after
           WHERE number NOT IN (SELECT value FROM json_each(:numbers))""",
        {
            "after": len(tables),
            "numbers": json.dumps([table.number for table in tables]),
        },
    )


def apply_slots(tx: Transaction, slots: Sequence[SlotEntry]) -> None:
    """A slot that starts as one before it, on the same days, is that one and keeps its id."""
    known = {
        (start, days): id_
        for id_, start, days in tx.rows("SELECT id, start, days_of_week FROM slot")
    }
    tx.execute("DELETE FROM slot")
    for position, slot in enumerate(slots):
        days = json.dumps(slot.days_of_week)
        tx.insert(
            "slot",
            {
                "id": known.get((slot.start, days)) or tx.new_id(),
                "position": position,
                "name": slot.name,
                "start": slot.start,
                "end": slot.end,
                "days_of_week": days,
            },
        )
