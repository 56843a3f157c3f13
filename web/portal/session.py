"""The cookies of a signed-in browser, and the keys of portal requests."""

from collections.abc import Callable

from aiohttp import web

from appliance.box import Box
from appliance.environment import Environment
from appliance.staff.sign_in import OpenedSession, Session

_SESSION = "__Host-venuebox-session"
_DEVICE = "__Host-venuebox-device"
_A_YEAR = 365 * 24 * 3600
_SECRET_MAX = 64
# Markers in the User-Agent and the names that they stand for; the first match counts.
_BROWSERS = {
    "Edg": "Edge", "OPR": "Opera", "SamsungBrowser": "Samsung Internet", "Firefox": "Firefox",
    "FxiOS": "Firefox", "CriOS": "Chrome", "Chrome": "Chrome", "Safari": "Safari",
}  # fmt: skip
_SYSTEMS = {
    "iPhone": "iPhone", "iPad": "iPad", "Android": "Android", "Windows": "Windows",
    "Mac OS X": "macOS", "CrOS": "ChromeOS", "Linux": "Linux",
}  # fmt: skip


def session_secret(request: web.Request) -> str | None:
    """Return the session secret from the cookie; None if it is missing or too long."""
    return _read(request, _SESSION)


def device_secret(request: web.Request) -> str | None:
    """Return the secret that identifies this browser across sign-ins; None if it has none."""
    return _read(request, _DEVICE)


def signed_in(target: str, opened: OpenedSession) -> web.Response:
    """Redirect to `target` and set both cookies: sent over TLS only, not readable by scripts."""
    response = web.Response(status=303, headers={"Location": target})
    _set(response, _SESSION, opened.secret, None)
    _set(response, _DEVICE, opened.device_secret, _A_YEAR)
    return response


def signed_out(note: str) -> web.Response:
    """Redirect to the sign-in page, which shows `note`; delete the session cookie only."""
    response = web.Response(status=303, headers={"Location": f"/portal/sign-in?note={note}"})
    response.del_cookie(_SESSION, path="/", secure=True, httponly=True, samesite="Lax")
    return response


def _read(request: web.Request, name: str) -> str | None:
    secret = request.cookies.get(name, "")
    return secret if 0 < len(secret) <= _SECRET_MAX else None


def _set(response: web.StreamResponse, name: str, value: str, seconds: int | None) -> None:
    # With `Strict`, a link to the portal in an email would open signed out.
    response.set_cookie(
        name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="Lax"
    )


def describe_browser(request: web.Request) -> str:
    """Return the browser's name for the list of sessions: `Firefox, Windows`."""
    return describe_device(request.headers.get("User-Agent", ""))


def describe_device(user_agent: str) -> str:
    """Return browser and system from the User-Agent; "" if unknown."""
    found = (
        next((name for marker, name in known.items() if marker in user_agent), "")
        for known in (_BROWSERS, _SYSTEMS)
    )
    return ", ".join(name for name in found if name)


BOX: web.AppKey[Box] = web.AppKey("box", Box)
RESTART: web.AppKey[Callable[[], None]] = web.AppKey("restart")
"""Restarts the box within the process, with the settings read again. Unset in the demo."""
LIVE: web.RequestKey[Environment] = web.RequestKey("live", Environment)
"""The live environment: it stores the staff accounts of both environments."""
SESSION: web.RequestKey[Session] = web.RequestKey("session", Session)
