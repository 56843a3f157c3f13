"""The browser in which a guest stores reservations: a signed cookie, no account."""

from dataclasses import dataclass

from aiohttp import web

from appliance.core.tokens import hash_token
from web.guest.responses import environment_of
from web.middleware import SECURE

_LIFE = 400 * 24 * 3600  # the longest time that browsers keep a cookie


@dataclass(frozen=True, slots=True)
class Device:
    """A browser. `hash` identifies it in the database; `is_new`: the cookie is not set yet."""

    token: str
    hash: bytes
    is_new: bool


def find_device(request: web.Request) -> Device | None:
    """Return the requesting browser if it has a valid cookie, else None."""
    token = request.cookies.get(_name(request), "")
    device_id = environment_of(request).keyring.read_device_token(token)
    return Device(token, hash_token(device_id), is_new=False) if device_id else None


def device_for(request: web.Request) -> Device | None:
    """Return the requesting browser or a new one; None over plain http, where no cookie is set."""
    found = find_device(request)
    if found is not None or not request.app[SECURE].is_private(request):
        return found
    environment = environment_of(request)
    database = environment.database
    device_id = database.tokens.new_id(database.clock.now())
    token = environment.keyring.device_token(device_id)
    return Device(token, hash_token(device_id), is_new=True)


def keep_device(request: web.Request, response: web.StreamResponse, device: Device | None) -> None:
    """Set the browser's cookie if it is new: TLS only, not readable by scripts."""
    if device is not None and device.is_new:
        response.set_cookie(
            _name(request), device.token, max_age=_LIFE, path="/", secure=True, httponly=True,
            samesite="Lax",
        )  # fmt: skip


def forget_device(request: web.Request, response: web.StreamResponse) -> None:
    """Delete the browser's cookie."""
    response.del_cookie(_name(request), path="/", secure=True, httponly=True, samesite="Lax")


def _name(request: web.Request) -> str:
    is_test = environment_of(request).name == "test"
    return "__Host-venuebox-guest-test" if is_test else "__Host-venuebox-guest"
