"""Find the reservations that a guest may open, by a link's token or the browser's cookie."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from aiohttp import web

from appliance.core.tokens import hash_token
from appliance.database.connection import Reader
from appliance.door.guest_pass import pass_text
from appliance.environment import Environment
from appliance.http.request import ENVIRONMENT, cookie_name, read_cookie
from appliance.reservations.holds import get_seat
from appliance.reservations.model import (
    OPEN_STATUSES,
    Reservation,
    cancel_deadline,
    evening_is_over,
    hours_of,
    late_deadline,
)
from appliance.reservations.request import parse_uuid
from appliance.reservations.rows import (
    find_reservation,
    has_asked_for_erasure,
    is_claimed,
    list_claimed,
    sum_payments,
)
from appliance.venue.model import Table, Venue, find_tonight, find_zone, get_venue
from web.guest.responses import PARTNERS_LANGUAGE, DeadLink, ReplacedLink
from web.middleware import SECURE

_LISTED_FOR = timedelta(days=60)  # how long past reservations stay in "my reservations"
_COOKIE_SECONDS = 400 * 24 * 3600  # the maximum that browsers allow


@dataclass(frozen=True, slots=True)
class OpenedLink:
    """A reservation and everything else that its pages show.

    - `hours`: the result of `hours_of`.
    - `guest_pass`: the text of the QR code, or None if the reservation no longer holds its table.
    - `cancel_until`: until when the guest may cancel or come with fewer, in ms since 1970.
    - `may_be_late`: whether the guest may say that the party comes late.
    - `is_alive`: true until the reservation's links expire.
    - `is_over`: true once the evening has ended.
    - `received`: the payments so far, in whole currency units.
    - `access_token`: the token in the access page's address.
    - `access_path`, `my_path`: the paths of the access page and of the page in "my reservations",
      with the environment's prefix.
    """

    reservation: Reservation
    table: Table
    venue: Venue
    hours: tuple[int, int] | None
    zone: ZoneInfo
    tonight: date
    guest_pass: str | None
    cancel_until: int
    may_cancel: bool
    may_be_late: bool
    is_alive: bool
    is_over: bool
    asked_for_erasure: bool
    access_token: str
    access_path: str
    my_path: str
    received: int = 0

    @property
    def amount_due(self) -> int:
        """What is still to be paid in advance, in whole currency units: the table's minimum."""
        awaits = self.reservation.status in {"pending", "partial"}
        return max(0, self.table.minimum_spend - self.received) if awaits else 0

    @property
    def day(self) -> date:
        """Return the date of the evening."""
        return date.fromisoformat(self.reservation.date)

    @property
    def is_past(self) -> bool:
        """Return whether the evening has ended or the reservation is completed."""
        return self.is_over or self.reservation.status == "completed"

    @property
    def has_arrived(self) -> bool:
        """Return whether the party is in, this evening."""
        return self.reservation.checked_in_at is not None and not self.is_past

    @property
    def is_expected(self) -> bool:
        """Return whether the party may still come."""
        return self.reservation.holds and not self.has_arrived and not self.is_past

    @property
    def is_open(self) -> bool:
        """Return whether the reservation can still be changed."""
        return self.reservation.status in OPEN_STATUSES

    @property
    def pass_path(self) -> str | None:
        """Return the path of the access page while it shows the guest pass, or else None."""
        return self.access_path if self.is_alive and self.guest_pass else None


async def open_link(request: web.Request, kind: Literal["access", "claim"]) -> OpenedLink:
    """Return the reservation for the token in the URL path, which must be of the given kind.

    The page then uses the language that the partner has set for the guest, if any. Raises DeadLink
    if the token is invalid or the link has expired, and ReplacedLink if there is a newer one.
    Tokens contain a MAC, so forged tokens are rejected without a database query.
    """
    environment, keyring = request[ENVIRONMENT], request[ENVIRONMENT].keyring
    token = request.match_info["token"]
    read = keyring.read_access_token if kind == "access" else keyring.read_claim_token
    link = read(token)
    if link is None:
        raise DeadLink
    opened = await environment.database.read(_open, environment, link[0])
    if opened is None or not opened.is_alive:
        raise DeadLink
    if opened.reservation.link_generation != link[1]:
        raise ReplacedLink
    if opened.reservation.source == "partner":
        request[PARTNERS_LANGUAGE] = opened.reservation.language
    return opened


async def open_mine(request: web.Request) -> OpenedLink:
    """Return the reservation whose id is in the URL path, even if its links have expired.

    Raises DeadLink if it is not in this browser's "my reservations".
    """
    environment, device = request[ENVIRONMENT], find_device(request)
    reservation_id = parse_uuid(request.match_info["id"])
    if device is None or reservation_id is None:
        raise DeadLink
    opened = await environment.database.read(_open, environment, reservation_id, device.hash)
    if opened is None:
        raise DeadLink
    return opened


def list_stored(reader: Reader, environment: Environment, device_hash: bytes) -> list[OpenedLink]:
    """Return the reservations in a browser's "my reservations".

    Current and future evenings come first, earliest first. Past evenings follow, latest first.
    """
    found = [_open(reader, environment, id_) for id_ in list_claimed(reader, device_hash)]
    listed = [each for each in found if each and each.day >= each.tonight - _LISTED_FOR]
    future = [each for each in listed if not each.is_over]
    return [*reversed(future), *(each for each in listed if each.is_over)]


def _open(
    reader: Reader,
    environment: Environment,
    reservation_id: str,
    device_hash: bytes | None = None,
) -> OpenedLink | None:
    """Return the reservation, or None if it does not exist.

    If `device_hash` is given, also return None if that browser has not stored the reservation.
    """
    reservation = find_reservation(reader, reservation_id)
    if reservation is None:
        return None
    if device_hash is not None and not is_claimed(reader, device_hash, reservation_id):
        return None
    now, keyring = reader.now, environment.keyring
    cancel_until = cancel_deadline(reader, reservation)
    is_awaited = reservation.status in OPEN_STATUSES and reservation.checked_in_at is None
    guest_pass = None
    if reservation.holds:
        guest_pass = pass_text(reader, keyring, environment.name, reservation)
    access_token = keyring.access_token(reservation_id, reservation.link_generation)
    return OpenedLink(
        reservation=reservation,
        table=get_seat(reader, reservation),
        venue=get_venue(reader),
        hours=hours_of(reader, reservation),
        zone=find_zone(reader),
        tonight=find_tonight(reader),
        guest_pass=guest_pass,
        cancel_until=cancel_until,
        may_cancel=is_awaited and now < cancel_until,
        may_be_late=is_awaited and now < late_deadline(reader, reservation),
        is_alive=now < reservation.link_expires_at,
        is_over=evening_is_over(reader, reservation),
        asked_for_erasure=has_asked_for_erasure(reader, reservation_id),
        access_token=access_token,
        access_path=f"{environment.prefix}/access/{access_token}",
        my_path=f"{environment.prefix}/me/{reservation_id}",
        received=sum_payments(reader, reservation_id),
    )


@dataclass(frozen=True, slots=True)
class Device:
    """A browser with stored reservations, identified by a signed cookie.

    `token` is the cookie's value. `hash` identifies the browser in the database. `is_new` is true
    if the browser does not have the cookie yet.
    """

    token: str
    hash: bytes
    is_new: bool


def find_device(request: web.Request) -> Device | None:
    """Return the browser that the request's cookie identifies, or None if no cookie is valid."""
    token = read_cookie(request, _cookie_kind(request))
    device_id = request[ENVIRONMENT].keyring.read_device_token(token)
    return Device(token, hash_token(device_id), is_new=False) if device_id else None


def device_for(request: web.Request) -> Device | None:
    """Return the browser that the request's cookie identifies, or else a new one.

    The response must set a new one's cookie with `keep_device`. Returns None if the browser has no
    cookie and plain http prevents setting one.
    """
    device = find_device(request)
    if device is not None or not request.app[SECURE].is_private(request):
        return device
    environment = request[ENVIRONMENT]
    device_id = environment.database.tokens.new_id(environment.database.clock.now())
    token = environment.keyring.device_token(device_id)
    return Device(token, hash_token(device_id), is_new=True)


def keep_device(request: web.Request, response: web.StreamResponse, device: Device | None) -> None:
    """Set the cookie (TLS only, hidden from scripts) if the browser does not have it yet."""
    if device is not None and device.is_new:
        response.set_cookie(
            cookie_name(request, _cookie_kind(request)), device.token, max_age=_COOKIE_SECONDS,
            path="/", secure=True, httponly=True, samesite="Lax",
        )  # fmt: skip


def forget_device(request: web.Request, response: web.StreamResponse) -> None:
    """Delete the cookie that identifies the browser."""
    response.del_cookie(
        cookie_name(request, _cookie_kind(request)), path="/", secure=True, httponly=True,
        samesite="Lax",
    )  # fmt: skip


def _cookie_kind(request: web.Request) -> str:
    is_test = request[ENVIRONMENT].name == "test"
    return "guest-test" if is_test else "guest"
