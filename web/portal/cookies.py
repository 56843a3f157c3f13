"""Staff cookies, and the keys for the portal's objects in the application and its requests."""

from aiohttp import web

from appliance.box import Box
from appliance.environment import Environment
from appliance.http.request import cookie_name, read_cookie
from appliance.staff.sign_in import OpenedSession, Session

_SESSION, _DEVICE = "session", "device"
_A_YEAR = 365 * 24 * 3600
_SECRET_MAX = 64
# Maps a text in the User-Agent header to the name of a browser or system. The first text that the
# header contains is used.
_BROWSERS = {
    "Edg": "Edge", "OPR": "Opera", "SamsungBrowser": "Samsung Internet", "Firefox": "Firefox",
    "FxiOS": "Firefox", "CriOS": "Chrome", "Chrome": "Chrome", "Safari": "Safari",
}  # fmt: skip
_SYSTEMS = {
    "iPhone": "iPhone", "iPad": "iPad", "Android": "Android", "Windows": "Windows",
    "Mac OS X": "macOS", "CrOS": "ChromeOS", "Linux": "Linux",
}  # fmt: skip


def session_secret(request: web.Request) -> str | None:
    """Return the session secret in the cookie, or None if it is missing or too long."""
    return _read(request, _SESSION)


def device_secret(request: web.Request) -> str | None:
    """Return the secret that identifies this browser across sign-ins, or None."""
    return _read(request, _DEVICE)


def signed_in(request: web.Request, target: str, opened: OpenedSession) -> web.Response:
    """Redirect to `target` and set the session and device cookies.

    Browsers send the cookies over TLS only and hide them from scripts.
    """
    response = web.Response(status=303, headers={"Location": target})
    for kind, value, seconds in (
        (_SESSION, opened.secret, None),
        (_DEVICE, opened.device_secret, _A_YEAR),
    ):
        # `Lax`, because with `Strict` a portal link in an email would open the sign-in page.
        response.set_cookie(
            cookie_name(request, kind), value, max_age=seconds, path="/", secure=True,
            httponly=True, samesite="Lax",
        )  # fmt: skip
    return response


def signed_out(request: web.Request, note: str) -> web.Response:
    """Delete the session cookie but not the device cookie, and redirect to the sign-in page.

    `note` names the message that the page shows.
    """
    response = web.Response(status=303, headers={"Location": f"/portal/sign-in?note={note}"})
    response.del_cookie(
        cookie_name(request, _SESSION), path="/", secure=True, httponly=True, samesite="Lax"
    )
    return response


def _read(request: web.Request, kind: str) -> str | None:
    secret = read_cookie(request, kind)
    return secret if 0 < len(secret) <= _SECRET_MAX else None


def describe_browser(request: web.Request) -> str:
    """Return a description of the browser for the list of sessions, such as `Firefox, Windows`."""
    return describe_device(request.headers.get("User-Agent", ""))


def describe_device(user_agent: str) -> str:
    """Return the browser and system in a User-Agent header, or "" if both are unknown."""
    found = (
        next((name for marker, name in known.items() if marker in user_agent), "")
        for known in (_BROWSERS, _SYSTEMS)
    )
    return ", ".join(name for name in found if name)


BOX: web.AppKey[Box] = web.AppKey("box", Box)
LIVE: web.RequestKey[Environment] = web.RequestKey("live", Environment)
"""The live environment, which stores the staff accounts for live and test."""
SESSION: web.RequestKey[Session] = web.RequestKey("session", Session)
