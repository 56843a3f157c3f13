"""Edit the slots: reservations keep the times they were granted.

Those left without a slot are shown first, as edit_tables.py tells.
"""

import json
from collections.abc import Sequence

from appliance.errors import field_invalid
from appliance.house_errors import ChangedMeanwhile, SlotIsHeld
from appliance.model.evening import is_slot
from appliance.model.venue import Slot, fingerprint
from appliance.model.venue_clash import Clashes, clash_mark, find_shifted, slot_clashes
from appliance.model.venue_file import SlotEntry
from appliance.store.connection import Transaction
from appliance.store.readings import find_tonight
from appliance.store.venue import get_slot, get_venue, list_coming, list_slots

_WEEK = frozenset(range(7))


def add_slot(tx: Transaction, entry: SlotEntry) -> str:
    """A new slot after the others; its id. ValidationError when another starts then."""
    slots = list_slots(tx)
    slot = _slot(tx.new_id(), entry)
    _check(slot, slots)
    _settle(tx, slots, [*slots, slot], None)
    tx.insert(
        "slot",
        {"id": slot.id, "position": len(slots), "name": slot.name, "start": slot.start,
         "end": slot.end, "days_of_week": json.dumps(slot.days_of_week)},
    )  # fmt: skip
    return slot.id


def edit_slot(
    tx: Transaction, slot_id: str, seen: str, entry: SlotEntry, accepted: str | None = None
) -> Clashes:
    """Change a slot. NotFound, ChangedMeanwhile, ValidationError, SlotIsHeld."""
    _check_seen(get_slot(tx, slot_id), seen)
    slots, slot = list_slots(tx), _slot(slot_id, entry)
    others = [other for other in slots if other.id != slot_id]
    _check(slot, others)
    clashes = _settle(tx, slots, [*others, slot], accepted)
    if not clashes:
        tx.execute(
            """UPDATE slot SET name = :name, start = :start, "end" = :end, days_of_week = :days
               WHERE id = :id""",
            {"id": slot_id, "name": slot.name, "start": slot.start, "end": slot.end,
             "days": json.dumps(slot.days_of_week)},
        )  # fmt: skip
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


def _slot(slot_id: str, entry: SlotEntry) -> Slot:
    days = tuple(sorted(set(entry.days_of_week)))
    return Slot(slot_id, entry.name or entry.start, entry.start, entry.end, days)


def _check_seen(slot: Slot, seen: str) -> None:
    if fingerprint(slot) != seen:
        raise ChangedMeanwhile


def _check(slot: Slot, others: Sequence[Slot]) -> None:
    if not is_slot(slot.start) or not is_slot(slot.end):
        raise field_invalid("start", "time")
    if not slot.days_of_week or not set(slot.days_of_week) <= _WEEK:
        raise field_invalid("days", "a_day")
    for other in others:
        if other.start == slot.start and set(other.days_of_week) & set(slot.days_of_week):
            raise field_invalid("start", "slot_taken", name=other.name, start=slot.start)


def _settle(
    tx: Transaction, before: Sequence[Slot], after: Sequence[Slot], accepted: str | None
) -> Clashes:
    """What stands against it and was not accepted; SlotIsHeld for what cannot be."""
    coming, ends = list_coming(tx, find_tonight(tx).isoformat()), get_venue(tx).evening_ends_at
    if find_shifted(coming, after, ends) - find_shifted(coming, before, ends):
        raise SlotIsHeld
    clashes = slot_clashes(coming, before, after)
    return () if clash_mark(clashes) == accepted else clashes
