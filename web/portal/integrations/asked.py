"""What an address or a form asks for: which deliveries, of which days or minutes."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from appliance.actions.announce import EVENT_TYPES, EXTRA_TYPES
from appliance.actions.replay_delivery import Selection
from appliance.errors import InvalidDate, NotFound
from appliance.model.access_code import parse_access_code
from appliance.model.booking import parse_uuid
from appliance.model.delivery import STATES
from appliance.model.evening import parse_date
from appliance.store.connection import Reader
from appliance.store.delivery_pages import DeliveryFilter, Place, get_listed_delivery
from appliance.store.reservations import find_by_access_code, find_reservation
from web.portal.forms import field_error

WHICH = {"dead": ("dead",), "lost": ("dead", "cancelled"), "all": STATES}
_FOREVER = 2**62
_DIGITS_MAX = 18

Get = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class AskedPeriod:
    """A replay that is asked for: `selection` None until an endpoint is chosen."""

    endpoint_id: str | None
    which: str
    since: str
    until: str
    selection: Selection | None


def read_filter(get: Get, zone: tzinfo) -> DeliveryFilter:
    """`endpoint`, `state`, `type`, `from` and `to`, both days included; ValidationError."""
    return DeliveryFilter(
        endpoint_id=_endpoint_id(get),
        state=_one_of("state", get("state"), STATES),
        event_type=_one_of("type", get("type"), (*EVENT_TYPES, *EXTRA_TYPES)),
        since=_day(get("from"), zone),
        until=_day(get("to"), zone, after=1),
    )


@dataclass(frozen=True, slots=True)
class Sought:
    """What somebody looks for, by what a partner or a guest can tell of it."""

    delivery_id: str | None = None
    reservation_id: str | None = None


def find_sought(reader: Reader, text: str) -> Sought:
    """The delivery or the reservation of that id, or the reservation of that access code."""
    found_id = parse_uuid(text)
    if found_id is None:
        code = parse_access_code(text)
        reservation = None if code is None else find_by_access_code(reader, code)
    else:
        with suppress(NotFound):
            return Sought(delivery_id=get_listed_delivery(reader, found_id)[1].id)
        reservation = find_reservation(reader, found_id)
    return Sought(reservation_id=None if reservation is None else reservation.id)


def read_place(text: str) -> Place | None:
    """Where a page begins, as `12.34`; anything else is the beginning."""
    event, _, delivery = text.partition(".")
    digits = event + delivery
    if not (digits.isascii() and event.isdecimal() and delivery.isdecimal()):
        return None
    if max(len(event), len(delivery)) > _DIGITS_MAX:
        return None
    return int(event), int(delivery)


def read_period(get: Get, zone: tzinfo) -> AskedPeriod:
    """`endpoint`, `which`, and the minutes `from` and `until`, its end not included."""
    endpoint_id = _endpoint_id(get)
    which = _one_of("which", get("which") or "dead", tuple(WHICH)) or "dead"
    since, until = get("from"), get("until")
    first, last = _minute(since, zone), _minute(until, zone)
    selection = None
    if endpoint_id is not None:
        begins = 0 if first is None else first
        ends = _FOREVER if last is None else last
        selection = Selection(endpoint_id, WHICH[which], begins, ends)
    return AskedPeriod(endpoint_id, which, since, until, selection)


def _endpoint_id(get: Get) -> str | None:
    text = get("endpoint")
    endpoint_id = parse_uuid(text) if text else None
    if text and endpoint_id is None:
        raise field_error("endpoint", "une adresse de la liste.", "one of the list.")
    return endpoint_id


def _one_of(field: str, text: str, known: tuple[str, ...]) -> str | None:
    if text and text not in known:
        raise field_error(field, "un choix de la liste.", "one of the list.")
    return text or None


def _day(text: str, zone: tzinfo, *, after: int = 0) -> int | None:
    if not text:
        return None
    day = parse_date(text)
    if day is None:
        raise InvalidDate(field="date")
    try:
        begins = datetime(day.year, day.month, day.day, tzinfo=zone) + timedelta(days=after)
        return round(begins.timestamp() * 1000)
    except (OverflowError, ValueError):
        raise InvalidDate(field="date") from None


def _minute(text: str, zone: tzinfo) -> int | None:
    """`2026-11-21T19:30` in venue time."""
    if not text:
        return None
    try:
        moment = datetime.strptime(text[:16], "%Y-%m-%dT%H:%M").replace(tzinfo=zone)
        return round(moment.astimezone(UTC).timestamp() * 1000)
    except (OverflowError, ValueError):
        raise InvalidDate(field="date") from None
