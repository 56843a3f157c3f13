"""Build responses for guests: pages, headers, languages and rate limits."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from appliance.box import Box
from appliance.clock import Clock
from appliance.core.email_addresses import email_key
from appliance.core.errors import ManyFromAddress, RateLimited, TooManyBookings
from appliance.core.i18n import Language
from appliance.core.tokens import EnvironmentName
from appliance.environment import Environment
from appliance.http.rate_limit import RateLimit
from appliance.http.request import CALLER_OF, ENVIRONMENT, Handler, is_from_our_page
from appliance.http.security_headers import page_headers
from appliance.reservations.model import Reservation
from appliance.venue.model import get_venue
from web.rendering import LANGUAGES, STATIC_FILES, render

_POSTS_PER_MINUTE = 60  # per client address, which many guests may share
_HOUR = 3600.0
_ALL_ADDRESSES = ""
_MOST_CALLERS = 20_000
_HEADERS = page_headers()
# The header with the time until which a phone may store the card (ms since 1970). The page that is
# stored on the phone ignores responses without this header, because they do not come from the box
# but, for example, from a captive portal or a tunnel.
LINK_ENDS = "Venuebox-Link-Ends"
PARTNERS_LANGUAGE: web.RequestKey[str | None] = web.RequestKey("partners_language")
"""The language that the partner has set for the guest whose link was opened."""


@dataclass(frozen=True, slots=True)
class BookingLimit:
    """How many upcoming bookings one caller may have.

    `booked` contains the ids of the caller's reservations since the process started. `refusal` is
    raised if `most` of them are active and not past.
    """

    booked: set[str]
    most: int
    refusal: type[RateLimited]


class GuestLimits:
    """Rate limits for guests' forms in one environment.

    Many guests may share an address, such as the customers of a mobile operator. So a guest is also
    a browser, a phone number and an email address, with a lower limit. The methods raise
    RateLimited or ManyFromAddress if a limit is exceeded.
    """

    def __init__(self, environment: Environment, clock: Clock) -> None:
        booking = environment.settings.booking
        self._posts = RateLimit(clock, _POSTS_PER_MINUTE)
        self._bookings = RateLimit(clock, booking.hourly_for_address, _HOUR, ManyFromAddress)
        self._all_bookings = RateLimit(clock, booking.hourly, _HOUR)
        self._open_for_guest = booking.open_for_guest
        self._open_for_address = booking.open_for_address
        # The ids of the reservations booked by each caller. The cache evicts the least recently
        # used caller.
        self._booked_by: Callable[[str], set[str]] = lru_cache(_MOST_CALLERS)(lambda _: set())

    def count_post(self, request: web.Request) -> None:
        """Count a form that a guest has submitted."""
        self._posts.spend(request.app[CALLER_OF](request))

    def count_booking(self, request: web.Request) -> BookingLimit:
        """Count a booking request. Return the limit for its address.

        The limit is 1 while all addresses together exceed the hourly limit, so that guests without
        a reservation can still book.
        """
        caller = request.app[CALLER_OF](request)
        self._bookings.spend(caller)
        most = self._open_for_address
        try:
            self._all_bookings.spend(_ALL_ADDRESSES)
        except RateLimited:
            most = 1
        return BookingLimit(self._booked_by(f"address {caller}"), most, ManyFromAddress)

    def limits_of_guest(self, browser: str, reservation: Reservation) -> list[BookingLimit]:
        """Return the limits for a guest by browser (`""`: unknown), phone numbers and email."""
        callers = [f"phone {number}" for number in reservation.phone_numbers]
        if browser:
            callers.append(f"browser {browser}")
        if reservation.customer_email:
            callers.append(f"email {email_key(reservation.customer_email)}")
        return [
            BookingLimit(self._booked_by(each), self._open_for_guest, TooManyBookings)
            for each in callers
        ]


GUEST_LIMITS: web.AppKey[dict[EnvironmentName, GuestLimits]] = web.AppKey("guest_limits")


def make_guest_limits(app: web.Application, box: Box) -> None:
    """Create the guest rate limits for each environment and store them in `app`."""
    app[GUEST_LIMITS] = {each.name: GuestLimits(each, box.clock) for each in box.environments}


def guest_limits_of(request: web.Request) -> GuestLimits:
    """Return the guest rate limits for the request's environment."""
    return request.app[GUEST_LIMITS][request[ENVIRONMENT].name]


class DeadLink(Exception):
    """Raised if the URL leads to no reservation.

    Unknown and expired links get the same response.
    """


class ReplacedLink(DeadLink):
    """Raised if the venue has replaced the link by a new one."""


def guest_page(handler: Handler) -> Handler:
    """Wrap a handler to limit POSTs, reject POSTs from other sites, and show error pages."""

    @wraps(handler)
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            if request.method == "POST":
                if not is_from_our_page(request, request[ENVIRONMENT].links.base):
                    return page(request, "guest/elsewhere.html", {}, status=403)
                guest_limits_of(request).count_post(request)
            return await handler(request)
        except DeadLink as error:
            return dead_link(request, is_replaced=isinstance(error, ReplacedLink))
        except RateLimited:
            venue = request[ENVIRONMENT].database.peek(get_venue)
            response = page(request, "guest/slow_down.html", {"venue": venue}, status=429)
            response.headers["Retry-After"] = "60"
            return response

    return handle


def page(
    request: web.Request, template: str, values: dict[str, object], status: int = 200
) -> web.Response:
    """Return a page in the visitor's language.

    Its styles are in the page: on a slow network, one more request would double the waiting time.
    """
    language = language_of(request)
    styles, source = request.config_dict[STATIC_FILES].inline("guest.css")
    shown = {"opened": None, "venue": None, "base": request[ENVIRONMENT].links.base, **values}
    return respond(
        {**page_headers(style_src=f"'self' {source}".strip()), "Content-Language": language.code},
        text=render(request, template, language, {**shown, "styles": styles}),
        status=status,
        content_type="text/html",
    )


def respond(headers: Mapping[str, str], **parts: Any) -> web.Response:
    """Return a response with `headers` and the headers that all guest pages have."""
    if "text" in parts:
        parts["charset"] = "utf-8"
    return web.Response(headers={**_HEADERS, **headers}, **parts)


def see_other(location: str) -> web.Response:
    """Redirect with 303, so reloading the target page does not send the form again."""
    return respond({"Location": location}, status=303)


def file_answer(body: bytes, content_type: str, name: str) -> web.Response:
    """Return a response that the browser saves as a file called `name`."""
    disposition = f'attachment; filename="{name}"'
    return respond({"Content-Disposition": disposition}, body=body, content_type=content_type)


# A link as it was pasted: behind the token, messengers and people add slashes, punctuation, a
# second query and more. Every token has the same length.
_PASTED = re.compile(
    r"/+(access|claim-guest|book|no-reminders)/[^\w-]*([A-Za-z0-9_-]{44})"
    r"(/cancel|/change|/calendar\.ics|/pass\.png)?(.*)",
    re.IGNORECASE | re.DOTALL,
)
_LANGUAGE = re.compile(r"[&?;]lang=([a-z]{2})")
_PASTED_MAX = 500


def dead_link(request: web.Request, *, is_replaced: bool = False) -> web.Response:
    """Return the page for expired, unknown, malformed and replaced links.

    Redirect to the right address if the requested one contains a genuine link.
    """
    location = _find_pasted(request)
    if location is not None:
        return respond({"Location": location}, status=302)
    venue = request[ENVIRONMENT].database.peek(get_venue) if is_replaced else None
    response = page(request, "guest/dead_link.html", {"venue": venue}, status=404)
    response.headers[LINK_ENDS] = "0"
    return response


def _find_pasted(request: web.Request) -> str | None:
    """Return the location of the genuine link in the requested path, or None.

    None also if the path is right, so that the link has expired.
    """
    environment, path = request[ENVIRONMENT], request.path
    visible = (c for c in unquote(path) if not c.isspace() and unicodedata.category(c) != "Cf")
    found = _PASTED.search("".join(visible)[:_PASTED_MAX])
    if found is None or request.method not in {"GET", "HEAD"}:
        return None
    kind, token, part, rest = found[1].lower(), found[2], found[3] or "", found[4]
    keyring = environment.keyring
    read = keyring.read_claim_token if kind == "claim-guest" else keyring.read_access_token
    location = f"{environment.prefix}/{kind}/{token}{part}"
    if location == path or read(token) is None:
        return None
    language = _LANGUAGE.search(rest)
    query = request.rel_url.raw_query_string or (f"lang={language[1]}" if language else "")
    return f"{location}?{query}" if query else location


def language_of(request: web.Request) -> Language:
    """Return the language in `?lang=`, or else the partner's choice, or else the browser's."""
    languages, partners = request.config_dict[LANGUAGES], request.get(PARTNERS_LANGUAGE)
    if partners is not None and "lang" not in request.query:
        return languages.get(partners)
    return languages.of(request)


def emails_are_sent(environment: Environment) -> bool:
    """Return whether new emails are sent, or stored for `/test/outbox` in the test environment.

    Without a mail server, the live environment's emails stay queued until a server is configured.
    """
    return environment.name == "test" or bool(environment.settings.mail.host)


def takes_bookings(environment: Environment) -> bool:
    """Return whether online booking is enabled. In the test environment, it always is."""
    return environment.name == "test" or environment.database.peek(get_venue).booking_page
