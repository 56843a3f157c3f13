"""Which terminal is speaking: by its bearer token, or by the cookie that pairing set."""

from contextlib import suppress

from aiohttp import web

from appliance.environment import Environment
from appliance.errors import Unavailable
from appliance.house_errors import BrowserRevoked, RoleMissing, TerminalNotPaired, TerminalRevoked
from appliance.model.terminal import Terminal
from appliance.store.terminals import find_by_token, touch_terminal
from appliance.tokens import hash_token
from terminal_bridge.context import ENVIRONMENT, STILL_MAY
from terminal_bridge.same_origin import is_from_our_page

_MINUTE = 60_000
_VERSION_MAX = 200
_SAFE_METHODS = frozenset({"GET", "HEAD"})
_A_YEAR = 365 * 24 * 3600
_TOKEN_LENGTH = len("term_") + 64


async def authenticate(request: web.Request, role: str = "scan") -> Terminal:
    """The terminal that sent `request`, whose role includes `role`.

    TerminalNotPaired, TerminalRevoked (from its next request on; a browser is told to forget
    what it keeps) or RoleMissing otherwise.
    """
    environment = request[ENVIRONMENT]
    terminal = _identify(request, role)
    request[STILL_MAY] = lambda later: _identify(later, role)
    await touch(environment, terminal, request.headers.get("User-Agent"))
    return terminal


def _identify(request: web.Request, role: str) -> Terminal:
    environment = request[ENVIRONMENT]
    token = _read_token(request, environment)
    terminal = environment.database.peek(find_by_token, hash_token(token)) if token else None
    if terminal is None:
        raise TerminalNotPaired
    if terminal.revoked_at is not None:
        raise TerminalRevoked if "Authorization" in request.headers else BrowserRevoked
    if not terminal.may(role):
        raise RoleMissing(role=role)
    return terminal


def keep_token(response: web.Response, environment: Environment, token: str) -> None:
    """Let the browser that paired send its token by itself, unseen by scripts; "" takes it back."""
    response.set_cookie(
        cookie_name(environment),
        token,
        max_age=_A_YEAR if token else 0,
        path="/",
        secure=True,
        httponly=True,
        samesite="Strict",
    )


def cookie_name(environment: Environment) -> str:
    """The cookie of each environment: both are served under one host, and it has no path."""
    return f"__Host-venuebox-terminal{'' if environment.name == 'live' else '-test'}"


def _read_token(request: web.Request, environment: Environment) -> str | None:
    """A cookie is no credential when another site's page may have sent it."""
    header = request.headers.get("Authorization")
    if header is not None:
        scheme, _, token = header.partition(" ")
        token = token.strip()
        is_token = scheme.lower() == "bearer" and len(token) == _TOKEN_LENGTH
        return token if is_token and token.startswith("term_") else None
    token = request.cookies.get(cookie_name(environment), "")
    if request.method in _SAFE_METHODS or is_from_our_page(request, environment.links.base):
        return token or None
    return None


async def touch(environment: Environment, terminal: Terminal, agent: str | None = None) -> None:
    """Note once a minute that it was active; a full disk does not close the door for that."""
    seen = terminal.last_seen_at
    if seen is None or not 0 <= environment.database.clock.now() - seen < _MINUTE:
        with suppress(Unavailable):
            version = agent and "".join(c for c in agent if c.isprintable())[:_VERSION_MAX]
            await environment.database.write(touch_terminal, terminal.id, version)
