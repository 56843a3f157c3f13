"""A signed-in browser: its cookies, and the keys that portal requests carry."""

from collections.abc import Callable

from aiohttp import web

from appliance.box import Box
from appliance.environment import Environment
from appliance.staff.sign_in import OpenedSession, Session

_SESSION = "__Host-venuebox-session"
_DEVICE = "__Host-venuebox-device"
_A_YEAR = 365 * 24 * 3600
_SECRET_MAX = 64
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def session_secret(request: web.Request) -> str | None:
    """Return the session secret in the browser's cookie."""
    return _read(request, _SESSION)


def device_secret(request: web.Request) -> str | None:
    """Return the device secret, which identifies the browser from an earlier sign-in."""
    return _read(request, _DEVICE)


def keep_session(response: web.StreamResponse, opened: OpenedSession) -> None:
    """Set both cookies: TLS only, not readable by scripts."""
    _set(response, _SESSION, opened.secret, None)
    _set(response, _DEVICE, opened.device_secret, _A_YEAR)


def forget_session(response: web.StreamResponse) -> None:
    """Delete the session cookie; the device cookie stays."""
    response.del_cookie(_SESSION, path="/", secure=True, httponly=True, samesite="Lax")


def _read(request: web.Request, name: str) -> str | None:
    secret = request.cookies.get(name, "")
    return secret if 0 < len(secret) <= _SECRET_MAX else None


def _set(response: web.StreamResponse, name: str, value: str, seconds: int | None) -> None:
    # Lax: a link in an email to the portal opens signed in.
    response.set_cookie(
        name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="Lax"
    )


def describe_browser(request: web.Request) -> str:
    """Return the browser's name for the list of sessions: `Firefox, Windows`."""
    return describe_device(request.headers.get("User-Agent", ""))


def describe_device(user_agent: str) -> str:
    """Return browser and system from the User-Agent; "" if unknown."""
    words = (_first(user_agent, _BROWSERS), _first(user_agent, _SYSTEMS))
    return ", ".join(word for word in words if word)


def _first(user_agent: str, known: tuple[tuple[str, str], ...]) -> str:
    return next((name for mark, name in known if mark in user_agent), "")


BOX: web.AppKey[Box] = web.AppKey("box", Box)
RESTART: web.AppKey[Callable[[], None]] = web.AppKey("restart")
"""Restarts within the process and reads the settings again; may be absent."""
HOUSE: web.RequestKey[Environment] = web.RequestKey("house", Environment)
SESSION: web.RequestKey[Session] = web.RequestKey("session", Session)
