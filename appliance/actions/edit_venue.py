"""Edit the venue itself: its name, its rules, its policies, when its evening ends."""

import json
import re

from appliance.actions.keep_holds import keep_holds
from appliance.errors import Trouble, ValidationError, field_invalid
from appliance.house_errors import ChangedMeanwhile
from appliance.model.evening import is_slot, minutes
from appliance.model.notices import VenueChanged
from appliance.model.venue import Venue, fingerprint
from appliance.model.venue_file import ADDRESS_MAX, MAP_URL
from appliance.store.connection import Transaction
from appliance.store.venue import get_venue

STATUSES = ("active", "inactive", "suspended")
MODES = ("free", "prepaid")
_LATEST_END = 12 * 60
_HOURS_MAX = 24 * 365


def edit_venue(tx: Transaction, seen: str, wished: Venue) -> None:
    """Make the venue as wished, its id excepted; `seen` is the fingerprint of what was read.

    ChangedMeanwhile, ValidationError; SlotIsHeld when the evening would end on the other side
    of a slot that is booked. Reservations keep everything they were granted.
    """
    venue = get_venue(tx)
    if fingerprint(venue) != seen:
        raise ChangedMeanwhile
    _check(tx, wished)
    with keep_holds(tx):
        _update(tx, wished)
    tx.notices.append(VenueChanged())


def _update(tx: Transaction, wished: Venue) -> None:
    tx.execute(
        """UPDATE venue
           SET name = :name, slug = :slug, status = :status, reservation_mode = :mode,
               auto_confirm = :auto_confirm, request_expiry_hours = :hours,
               currency = :currency, time_zone = :time_zone, evening_ends_at = :ends,
               policies = :policies, address = :address, map_url = :map_url""",
        {
            "name": wished.name,
            "slug": wished.slug,
            "status": wished.status,
            "mode": wished.reservation_mode,
            "auto_confirm": int(wished.auto_confirm),
            "hours": wished.request_expiry_hours,
            "currency": wished.currency,
            "time_zone": wished.time_zone,
            "ends": wished.evening_ends_at,
            "policies": json.dumps(wished.policies, ensure_ascii=False)
            if wished.policies
            else None,
            "address": wished.address,
            "map_url": wished.map_url,
        },
    )


def _check(tx: Transaction, wished: Venue) -> None:
    if not wished.name.strip():
        raise field_invalid("name", "name")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", wished.slug):
        raise field_invalid("slug", "slug")
    if wished.status not in STATUSES or wished.reservation_mode not in MODES:
        raise field_invalid("status", "one_of_the_list")
    if not 1 <= wished.request_expiry_hours <= _HOURS_MAX:
        raise field_invalid("request_expiry_hours", "hours", longest=_HOURS_MAX)
    if not re.fullmatch("[A-Z]{3}", wished.currency):
        raise field_invalid("currency", "currency")
    if not is_slot(wished.evening_ends_at) or minutes(wished.evening_ends_at) > _LATEST_END:
        raise field_invalid("evening_ends_at", "evening_end")
    _check_place(wished)
    _check_zone(tx, wished.time_zone)


def _check_place(wished: Venue) -> None:
    if wished.address is not None and len(wished.address) > ADDRESS_MAX:
        raise field_invalid("address", "at_most", longest=ADDRESS_MAX)
    if wished.map_url is not None and not re.fullmatch(MAP_URL, wished.map_url):
        raise field_invalid("map_url", "map_url")


def _check_zone(tx: Transaction, name: str) -> None:
    fault: ValidationError = field_invalid("time_zone", "time_zone")
    if not re.fullmatch(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", name):  # it names a file
        raise fault
    try:
        tx.zones.zone(name)
    except Trouble:
        raise fault from None
