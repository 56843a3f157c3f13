"""Keep what is held in the way of a second booking, however the venue changes."""

from collections.abc import Iterator
from contextlib import contextmanager

from appliance.house_errors import SlotIsHeld
from appliance.model.venue_clash import find_shifted
from appliance.store.connection import Transaction
from appliance.store.readings import find_tonight
from appliance.store.venue import get_venue, list_coming, list_slots


@contextmanager
def keep_holds(tx: Transaction) -> Iterator[None]:
    """Around a change of slots or of the evening's end.

    SlotIsHeld when it would move a slot that is booked across midnight: the same table could
    then be granted again for the same slot.
    """
    if tx.value("SELECT id FROM venue") is None:  # nothing can be booked yet
        yield
        return
    coming = list_coming(tx, find_tonight(tx).isoformat())

    def find() -> frozenset[str]:
        return find_shifted(coming, list_slots(tx), get_venue(tx).evening_ends_at)

    before = find()
    yield
    if find() - before:
        raise SlotIsHeld
