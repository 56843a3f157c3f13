"""What an address or a form asks for: which deliveries, of which days or minutes."""

import re
from contextlib import suppress
from datetime import datetime, timedelta, tzinfo

from appliance.actions.announce import EVENT_TYPES, EXTRA_TYPES
from appliance.actions.replay_delivery import Selection
from appliance.errors import InvalidDate, NotFound
from appliance.model.access_code import parse_access_code
from appliance.model.booking import parse_uuid
from appliance.model.delivery import STATES
from appliance.store.connection import Reader
from appliance.store.delivery_pages import DeliveryFilter, Place, get_listed_delivery
from appliance.store.reservations import find_by_access_code, find_reservation
from web.portal.forms import Form, field_error

WHICH = {"dead": ("dead",), "lost": ("dead", "cancelled"), "all": STATES}
_FOREVER = 2**62
_PLACE = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")


def read_filter(form: Form, zone: tzinfo) -> DeliveryFilter:
    """`endpoint`, `state`, `type`, `from` and `to`, both days included; ValidationError."""
    return DeliveryFilter(
        endpoint_id=_endpoint_id(form),
        state=form.one_of("state", ("", *STATES)) or None,
        event_type=form.one_of("type", ("", *EVENT_TYPES, *EXTRA_TYPES)) or None,
        since=_instant(form, "from", zone),
        until=_instant(form, "to", zone, days=1),
    )


def find_sought(reader: Reader, text: str) -> tuple[str | None, str | None]:
    """The delivery or the reservation of that id, or the reservation of that access code."""
    found_id, code = parse_uuid(text), parse_access_code(text)
    if found_id is None:
        reservation = None if code is None else find_by_access_code(reader, code)
    else:
        with suppress(NotFound):
            return get_listed_delivery(reader, found_id)[1].id, None
        reservation = find_reservation(reader, found_id)
    return None, None if reservation is None else reservation.id


def read_place(text: str) -> Place | None:
    """Where a page begins, as `12.34`; anything else is the beginning."""
    found = _PLACE.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None


def read_period(form: Form, zone: tzinfo) -> Selection | None:
    """`endpoint`, `which`, and the minutes `from` and `until`, its end not included.

    None until an endpoint is chosen.
    """
    endpoint_id, which = _endpoint_id(form), form.one_of("which", ("", *WHICH)) or "dead"
    first, last = (_instant(form, name, zone, "%Y-%m-%dT%H:%M") for name in ("from", "until"))
    if endpoint_id is None:
        return None
    return Selection(endpoint_id, WHICH[which], first or 0, _FOREVER if last is None else last)


def _endpoint_id(form: Form) -> str | None:
    text = form.text("endpoint")
    if text and parse_uuid(text) is None:
        raise field_error("endpoint", "une adresse de la liste.", "one of the list.")
    return parse_uuid(text)


def _instant(
    form: Form, name: str, zone: tzinfo, written: str = "%Y-%m-%d", days: int = 0
) -> int | None:
    """When the day or minute in the field begins in venue time, so many `days` later."""
    text = form.text(name)
    if not text:
        return None
    try:
        begins = datetime.strptime(text[:16], written).replace(tzinfo=zone) + timedelta(days=days)
        return round(begins.timestamp() * 1000)
    except (OverflowError, ValueError):
        raise InvalidDate(field="date") from None
