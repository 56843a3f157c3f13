"""Whether a password or a session may travel on this connection (reliability.md S6)."""

from ipaddress import ip_address, ip_network

from aiohttp import web

from web.guest.answer import environment_of


def is_private(request: web.Request) -> bool:
    """Whether the request came over TLS, or from within this machine."""
    try:
        peer = ip_address(request.remote or "")
    except ValueError:
        return False
    if request.secure or peer.is_loopback:
        return True
    proxies = environment_of(request).settings.server.trusted_proxies
    trusted = any(peer in ip_network(text, strict=False) for text in proxies)
    return trusted and request.headers.get("X-Forwarded-Proto") == "https"
