"""The two cookies of a signed-in browser: the session's, and the one by which it is known again."""

from aiohttp import web

from appliance.actions.sign_in import OpenedSession

_SESSION = "__Host-venuebox-session"
_DEVICE = "__Host-venuebox-device"
_A_YEAR = 365 * 24 * 3600
_SECRET_MAX = 64


def session_secret(request: web.Request) -> str | None:
    """What the browser says its session is."""
    return _read(request, _SESSION)


def device_secret(request: web.Request) -> str | None:
    """By what the browser may be known from an earlier sign-in."""
    return _read(request, _DEVICE)


def keep_session(response: web.StreamResponse, opened: OpenedSession) -> None:
    """Let the browser send both by itself, over TLS alone, and no script read them."""
    _set(response, _SESSION, opened.secret, None)
    _set(response, _DEVICE, opened.device_secret, _A_YEAR)


def forget_session(response: web.StreamResponse) -> None:
    """The session is over; the browser stays known."""
    response.del_cookie(_SESSION, path="/", secure=True, httponly=True, samesite="Lax")


def _read(request: web.Request, name: str) -> str | None:
    secret = request.cookies.get(name, "")
    return secret if 0 < len(secret) <= _SECRET_MAX else None


def _set(response: web.StreamResponse, name: str, value: str, seconds: int | None) -> None:
    # Lax: somebody who follows a link in a letter to the portal is signed in there.
    response.set_cookie(
        name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="Lax"
    )
