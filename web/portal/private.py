"""Whether a password or a session may travel on this connection (docs/security.md, S6)."""

from aiohttp import web

from web.names.secure import SECURE


def is_private(request: web.Request) -> bool:
    """Whether the request came over TLS, or from within this machine."""
    return request.app[SECURE].is_private(request)
