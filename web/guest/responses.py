"""What a guest's link opens, and what every answer to a guest has in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import wraps
from typing import Any
from zoneinfo import ZoneInfo

from aiohttp import web

from appliance.core.errors import RateLimited
from appliance.core.i18n import Language
from appliance.core.tokens import Keyring
from appliance.database.connection import Reader
from appliance.door.signing_keys import pass_text
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT, is_from_our_page
from appliance.reservations.claims import has_asked_for_erasure, is_claimed, list_claimed
from appliance.reservations.guest_terms import cancel_deadline, evening_is_over
from appliance.reservations.model import Reservation
from appliance.reservations.rows import find_reservation
from appliance.venue.model import Slot, Table, Venue, tonight
from appliance.venue.rows import find_table, get_venue, list_slots
from web.guest.rate_limits import guest_limits_of
from web.middleware import Handler
from web.rendering import LANGUAGES, page_headers, render


def emails_are_sent(environment: Environment) -> bool:
    """Whether a letter that is written now goes out; into the test environment's own outbox too.

    Where no mail server is set letters wait until there is one.
    """
    return environment.name == "test" or bool(environment.settings.mail.host)


_SHOWN_FOR = timedelta(days=60)  # after its evening, among "my reservations"


@dataclass(frozen=True, slots=True)
class OpenedLink:
    """One reservation and everything its pages say about it.

    `guest_pass` is the text of the QR code, None once the table was freed. `cancel_until` is
    when a guest can cancel no more; `is_over` tells that its evening has ended.
    """

    reservation: Reservation
    table: Table
    venue: Venue
    slots: tuple[Slot, ...]
    zone: ZoneInfo
    tonight: date
    guest_pass: str | None
    cancel_until: int
    may_cancel: bool
    is_alive: bool
    is_over: bool
    asked_for_erasure: bool

    @property
    def day(self) -> date:
        """The evening."""
        return date.fromisoformat(self.reservation.date)


def find_opened(reader: Reader, environment: Environment, reservation_id: str) -> OpenedLink | None:
    """What a link to that reservation opens; None when there is none or it has expired."""
    opened = _open(reader, environment, reservation_id)
    return opened if opened is not None and opened.is_alive else None


def find_kept(
    reader: Reader, environment: Environment, device_hash: bytes, reservation_id: str
) -> OpenedLink | None:
    """A reservation that this browser keeps, also once its links have expired."""
    if not is_claimed(reader, device_hash, reservation_id):
        return None
    return _open(reader, environment, reservation_id)


def list_kept(reader: Reader, environment: Environment, device_hash: bytes) -> list[OpenedLink]:
    """What a browser keeps: what is to come, the nearest first, then what has been."""
    found = [_open(reader, environment, id_) for id_ in list_claimed(reader, device_hash)]
    shown = [one for one in found if one and one.day >= one.tonight - _SHOWN_FOR]
    coming = [one for one in shown if not one.is_over]
    return [*reversed(coming), *(one for one in shown if one.is_over)]


def _open(reader: Reader, environment: Environment, reservation_id: str) -> OpenedLink | None:
    found = find_reservation(reader, reservation_id)
    table = find_table(reader, found.table_id) if found else None
    if found is None or table is None:
        return None
    venue, slots, now = get_venue(reader), tuple(list_slots(reader)), reader.now
    zone = reader.zones.zone(venue.time_zone)
    hours = environment.settings.guest.cancel_hours
    until = cancel_deadline(found, slots, venue, zone, hours)
    is_open = found.holds and found.status != "completed" and found.checked_in_at is None
    return OpenedLink(
        reservation=found,
        table=table,
        venue=venue,
        slots=slots,
        zone=zone,
        tonight=tonight(now, zone, venue.evening_ends_at),
        guest_pass=(
            pass_text(reader, environment.keyring, environment.name, found) if found.holds else None
        ),
        cancel_until=until,
        may_cancel=is_open and now < until,
        is_alive=now < found.link_expires_at,
        is_over=evening_is_over(found, venue, zone, now),
        asked_for_erasure=has_asked_for_erasure(reader, reservation_id),
    )


_HEADERS = page_headers()
# Until when a phone may keep a card (ms since 1970). A page that kept one takes only answers with
# this header for ours: what a tunnel or a captive portal says in our place has none.
LINK_ENDS = "Venuebox-Link-Ends"
_PARTNERS_CHOICE: web.RequestKey[str | None] = web.RequestKey("partners_choice")


class DeadLink(Exception):
    """A link or an address opens nothing: unknown and expired ones are alike."""


def guest_page(handler: Handler) -> Handler:
    """Give a dead link its page, and so a tap from another site's page, and too many taps."""

    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            if request.method == "POST":
                if not is_from_our_page(request, request[ENVIRONMENT].links.base):
                    return page(request, "guest/elsewhere.html", {}, status=403)
                guest_limits_of(request).count_tap(request)
            return await handler(request)
        except DeadLink:
            return dead_link(request)
        except RateLimited:  # in a minute it goes on
            response = page(request, "guest/slow_down.html", {}, status=429)
            response.headers["Retry-After"] = "60"
            return response

    return handle


async def open_link(
    request: web.Request, read_token: Callable[[Keyring, str], str | None]
) -> OpenedLink:
    """What the link opens whose token the path has; DeadLink when that is nothing.

    One that this box never made costs no look into the database. The language that a partner
    gave for its customer becomes that of the request.
    """
    environment = environment_of(request)
    reservation_id = read_token(environment.keyring, request.match_info["token"])
    if reservation_id is None:
        raise DeadLink
    opened = await environment.database.read(find_opened, environment, reservation_id)
    if opened is None:
        raise DeadLink
    if opened.reservation.source == "partner":
        request[_PARTNERS_CHOICE] = opened.reservation.language
    return opened


def page(
    request: web.Request, template: str, values: dict[str, object], status: int = 200
) -> web.Response:
    """A page in the visitor's language."""
    language = language_of(request)
    return respond(
        {"Content-Language": language.code},
        text=render(request, template, language, values),
        status=status,
        content_type="text/html",
    )


def respond(headers: Mapping[str, str], **parts: Any) -> web.Response:
    """An answer of these `parts` with `headers` and those that every guest's page has."""
    if "text" in parts:
        parts["charset"] = "utf-8"
    return web.Response(headers={**_HEADERS, **headers}, **parts)


def see_other(location: str) -> web.Response:
    """Go on there: a page that is loaded again sends nothing again."""
    return respond({"Location": location}, status=303)


def file_answer(body: bytes, kind: str, name: str) -> web.Response:
    """A file to keep."""
    disposition = f'attachment; filename="{name}"'
    return respond({"Content-Disposition": disposition}, body=body, content_type=kind)


def dead_link(request: web.Request) -> web.Response:
    """The page of expired, unknown and malformed links: nothing tells them apart."""
    response = page(request, "guest/dead_link.html", {}, status=404)
    response.headers[LINK_ENDS] = "0"
    return response


def language_of(request: web.Request) -> Language:
    """What `?lang=` says, else the partner's choice for this customer, else the browser's."""
    languages, chosen = request.config_dict[LANGUAGES], request.get(_PARTNERS_CHOICE)
    if chosen is not None and "lang" not in request.query:
        return languages.get(chosen)
    return languages.of(request)


def environment_of(request: web.Request) -> Environment:
    """The environment that the request came to."""
    return request[ENVIRONMENT]
