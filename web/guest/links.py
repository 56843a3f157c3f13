"""Find the reservations that a guest may open: by a link's token or by the browser's cookie."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from aiohttp import web

from appliance.core.tokens import Keyring, hash_token
from appliance.database.connection import Reader
from appliance.door.signing_keys import pass_text
from appliance.environment import Environment
from appliance.reservations.model import Reservation, cancel_deadline, evening_is_over
from appliance.reservations.request import parse_uuid
from appliance.reservations.rows import (
    find_reservation,
    has_asked_for_erasure,
    is_claimed,
    list_claimed,
)
from appliance.venue.model import Slot, Table, Venue, tonight
from appliance.venue.rows import find_table, get_venue, list_slots
from web.guest.responses import PARTNERS_LANGUAGE, DeadLink, environment_of
from web.middleware import SECURE

_LISTED_FOR = timedelta(days=60)  # time after the evening
_COOKIE_SECONDS = 400 * 24 * 3600  # the longest time that browsers keep a cookie


@dataclass(frozen=True, slots=True)
class OpenedLink:
    """A reservation with everything that its pages show.

    `guest_pass` is the text of the QR code; None once the table is free. `cancel_until` is the
    guest's cancellation deadline, in ms since 1970. `is_alive` is false once the links have
    expired, `is_over` is true once the evening has ended. The paths include the environment's
    prefix: `access_path` is the access page, `my_path` the page in "my reservations".
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
    access_path: str
    my_path: str

    @property
    def day(self) -> date:
        """Return the evening."""
        return date.fromisoformat(self.reservation.date)


async def open_link(
    request: web.Request, read_token: Callable[[Keyring, str], str | None]
) -> OpenedLink:
    """Return the reservation of the token in the path. Raises DeadLink if there is none.

    A token that this box did not issue is rejected without a query. If a partner chose a
    language for the guest, it becomes the language of the request.
    """
    environment = environment_of(request)
    reservation_id = read_token(environment.keyring, request.match_info["token"])
    if reservation_id is None:
        raise DeadLink
    opened = await environment.database.read(_open, environment, reservation_id)
    if opened is None or not opened.is_alive:
        raise DeadLink
    if opened.reservation.source == "partner":
        request[PARTNERS_LANGUAGE] = opened.reservation.language
    return opened


async def open_mine(request: web.Request) -> OpenedLink:
    """Return the reservation in the path, even if its links have expired.

    Raises DeadLink unless this browser stores it.
    """
    environment, device = environment_of(request), find_device(request)
    reservation_id = parse_uuid(request.match_info["id"])
    if device is None or reservation_id is None:
        raise DeadLink
    opened = await environment.database.read(_open, environment, reservation_id, device.hash)
    if opened is None:
        raise DeadLink
    return opened


def list_stored(reader: Reader, environment: Environment, device_hash: bytes) -> list[OpenedLink]:
    """Return a browser's reservations: future ones first, nearest first, then past ones."""
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
    """Return a reservation or None; with `device_hash`, only if that browser stores it."""
    reservation = find_reservation(reader, reservation_id)
    table = find_table(reader, reservation.table_id) if reservation else None
    if reservation is None or table is None:
        return None
    if device_hash is not None and not is_claimed(reader, device_hash, reservation_id):
        return None
    venue, slots, now = get_venue(reader), tuple(list_slots(reader)), reader.now
    zone, keyring = reader.zones.zone(venue.time_zone), environment.keyring
    hours = environment.settings.guest.cancel_hours
    cancel_until = cancel_deadline(reservation, slots, venue, zone, hours)
    has_arrived = reservation.status == "completed" or reservation.checked_in_at is not None
    guest_pass = None
    if reservation.holds:
        guest_pass = pass_text(reader, keyring, environment.name, reservation)
    return OpenedLink(
        reservation=reservation,
        table=table,
        venue=venue,
        slots=slots,
        zone=zone,
        tonight=tonight(now, zone, venue.evening_ends_at),
        guest_pass=guest_pass,
        cancel_until=cancel_until,
        may_cancel=reservation.holds and not has_arrived and now < cancel_until,
        is_alive=now < reservation.link_expires_at,
        is_over=evening_is_over(reservation, venue, zone, now),
        asked_for_erasure=has_asked_for_erasure(reader, reservation_id),
        access_path=f"{environment.prefix}/access/{keyring.access_token(reservation_id)}",
        my_path=f"{environment.prefix}/me/{reservation_id}",
    )


@dataclass(frozen=True, slots=True)
class Device:
    """A browser that stores reservations, identified by a signed cookie.

    `hash` identifies it in the database. `is_new` is true until the cookie is set.
    """

    token: str
    hash: bytes
    is_new: bool


def find_device(request: web.Request) -> Device | None:
    """Return the requesting browser if it has a valid cookie, else None."""
    token = request.cookies.get(_cookie_name(request), "")
    device_id = environment_of(request).keyring.read_device_token(token)
    return Device(token, hash_token(device_id), is_new=False) if device_id else None


def device_for(request: web.Request) -> Device | None:
    """Return the requesting browser or a new one; None over plain http, where no cookie is set."""
    device = find_device(request)
    if device is not None or not request.app[SECURE].is_private(request):
        return device
    environment = environment_of(request)
    device_id = environment.database.tokens.new_id(environment.database.clock.now())
    token = environment.keyring.device_token(device_id)
    return Device(token, hash_token(device_id), is_new=True)


def keep_device(request: web.Request, response: web.StreamResponse, device: Device | None) -> None:
    """Set the browser's cookie if it is new: for TLS only, and not readable by scripts."""
    if device is not None and device.is_new:
        response.set_cookie(
            _cookie_name(request), device.token, max_age=_COOKIE_SECONDS, path="/", secure=True,
            httponly=True, samesite="Lax",
        )  # fmt: skip


def forget_device(request: web.Request, response: web.StreamResponse) -> None:
    """Delete the browser's cookie."""
    response.del_cookie(
        _cookie_name(request), path="/", secure=True, httponly=True, samesite="Lax"
    )  # fmt: skip


def _cookie_name(request: web.Request) -> str:
    is_test = environment_of(request).name == "test"
    return "__Host-venuebox-guest-test" if is_test else "__Host-venuebox-guest"
