"""Reminders: an email some hours before the evening, to guests who booked before that."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from appliance.actions.queue_letter import write_to_guest
from appliance.model.calendar_entry import evening_hours, minute_of
from appliance.model.evening import tonight
from appliance.store.connection import Reader, Transaction
from appliance.store.due import Expected, list_unreminded
from appliance.store.letters import add_no_reminders, wants_no_reminders
from appliance.store.reservations import get_reservation
from appliance.store.venue import get_venue, list_slots

_HOUR = 3_600_000
_BY_DEFAULT = (20 * 60, 24 * 60)  # a whole evening at a venue that offers no slots that day


def remind(tx: Transaction, hours: int, limit: int) -> int:
    """Write to those whose evening begins within `hours`; to how many, at most `limit`.

    Once for a reservation, and not to who booked within those hours, has come already, or
    wants no reminders.
    """
    due = [guest for at, guest in _reminders(tx, hours) if at <= tx.now]
    for guest in due[:limit]:
        write_to_guest(tx, guest.id, "reminder")
    return len(due[:limit])


def find_next_reminder(reader: Reader, hours: int) -> int | None:
    """When the next reminder is due, in ms since 1970."""
    # Slots after midnight overlap the next day's: the first few are not quite in order.
    return min((at for at, _ in islice(_reminders(reader, hours), 200)), default=None)


def stop_reminders(tx: Transaction, reservation_id: str) -> None:
    """Remember the address of the reservation, as a hash; without one there is nothing to do.

    NotFound for an unknown id.
    """
    address = get_reservation(tx, reservation_id).customer_email
    if address is not None:
        add_no_reminders(tx, address)


def _reminders(reader: Reader, hours: int) -> Iterator[tuple[int, Expected]]:
    venue, slots = get_venue(reader), tuple(list_slots(reader))
    zone, now = reader.zones.zone(venue.time_zone), reader.now
    first = tonight(now, zone, venue.evening_ends_at)
    last = first + timedelta(days=hours // 24 + 2)
    nearest = None
    for guest in list_unreminded(reader, first):
        if guest.date > last and nearest is not None and guest.date > nearest:
            return
        starts = guest.starts
        if guest.slot is None:
            starts, _ = evening_hours(slots, guest.date, venue.evening_ends_at) or _BY_DEFAULT
        begins = minute_of(guest.date, starts, zone)
        at = begins - hours * _HOUR
        if begins <= now or guest.created_at >= at or wants_no_reminders(reader, guest.email):
            continue
        nearest = nearest or guest.date + timedelta(days=1)
        yield at, guest
