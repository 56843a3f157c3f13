"""Opening a guest's link, and what all answers to guests have in common."""

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
from appliance.http.request import ENVIRONMENT, Handler, is_from_our_page
from appliance.reservations.claims import has_asked_for_erasure, is_claimed, list_claimed
from appliance.reservations.guest_terms import cancel_deadline, evening_is_over
from appliance.reservations.model import Reservation
from appliance.reservations.rows import find_reservation
from appliance.venue.model import Slot, Table, Venue, tonight
from appliance.venue.rows import find_table, get_venue, list_slots
from web.guest.rate_limits import guest_limits_of
from web.rendering import LANGUAGES, page_headers, render


def emails_are_sent(environment: Environment) -> bool:
    """Return whether new emails are sent; the test environment's own outbox counts too.

    Without a mail server, emails stay queued until one is set.
    """
    return environment.name == "test" or bool(environment.settings.mail.host)


_SHOWN_FOR = timedelta(days=60)  # after the evening, in "my reservations"


@dataclass(frozen=True, slots=True)
class OpenedLink:
    """One reservation and everything that its pages show.

    `guest_pass` is the text of the QR code, None once the table is free. `cancel_until` is the
    guest's cancellation deadline; `is_over`: the evening has ended.
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
        """Return the evening."""
        return date.fromisoformat(self.reservation.date)


def find_opened(reader: Reader, environment: Environment, reservation_id: str) -> OpenedLink | None:
    """Return what a link to that reservation opens; None if it is unknown or expired."""
    opened = _open(reader, environment, reservation_id)
    return opened if opened is not None and opened.is_alive else None


def find_kept(
    reader: Reader, environment: Environment, device_hash: bytes, reservation_id: str
) -> OpenedLink | None:
    """Return a reservation that this browser stores, even if its links have expired."""
    if not is_claimed(reader, device_hash, reservation_id):
        return None
    return _open(reader, environment, reservation_id)


def list_kept(reader: Reader, environment: Environment, device_hash: bytes) -> list[OpenedLink]:
    """Return a browser's reservations: future ones first, nearest first, then past ones."""
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
# The time until which a phone may store a card (ms since 1970). A stored page accepts only
# answers with this header as ours: those of a tunnel or captive portal lack it.
LINK_ENDS = "Venuebox-Link-Ends"
_PARTNERS_CHOICE: web.RequestKey[str | None] = web.RequestKey("partners_choice")


class DeadLink(Exception):
    """A link or path opens nothing; unknown and expired ones get the same answer."""


def guest_page(handler: Handler) -> Handler:
    """Wrap a handler: pages for dead links, for POSTs from other sites and for too many POSTs."""

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
        except RateLimited:  # the guest can continue in a minute
            response = page(request, "guest/slow_down.html", {}, status=429)
            response.headers["Retry-After"] = "60"
            return response

    return handle


async def open_link(
    request: web.Request, read_token: Callable[[Keyring, str], str | None]
) -> OpenedLink:
    """Return what the token in the path opens. Raises DeadLink if that is nothing.

    A token that this box did not issue is rejected without a query. A partner's choice of
    language for its customer becomes the language of the request.
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
    """Return a page in the visitor's language."""
    language = language_of(request)
    return respond(
        {"Content-Language": language.code},
        text=render(request, template, language, values),
        status=status,
        content_type="text/html",
    )


def respond(headers: Mapping[str, str], **parts: Any) -> web.Response:
    """Return an answer with `headers` and the headers of all guest pages."""
    if "text" in parts:
        parts["charset"] = "utf-8"
    return web.Response(headers={**_HEADERS, **headers}, **parts)


def see_other(location: str) -> web.Response:
    """Redirect with 303, so that reloading the page does not send the form again."""
    return respond({"Location": location}, status=303)


def file_answer(body: bytes, kind: str, name: str) -> web.Response:
    """Return a file to download."""
    disposition = f'attachment; filename="{name}"'
    return respond({"Content-Disposition": disposition}, body=body, content_type=kind)


def dead_link(request: web.Request) -> web.Response:
    """Return the page of dead links, the same for expired, unknown and malformed ones."""
    response = page(request, "guest/dead_link.html", {}, status=404)
    response.headers[LINK_ENDS] = "0"
    return response


def language_of(request: web.Request) -> Language:
    """Return the language of `?lang=`, else the partner's choice, else the browser's."""
    languages, chosen = request.config_dict[LANGUAGES], request.get(_PARTNERS_CHOICE)
    if chosen is not None and "lang" not in request.query:
        return languages.get(chosen)
    return languages.of(request)


def environment_of(request: web.Request) -> Environment:
    """Return the environment of the request."""
    return request[ENVIRONMENT]
