"""Whether an unsafe request comes from a page of this box (docs/security.md, S15)."""

from aiohttp import web
from yarl import URL

_OWN_SITES = {"same-origin", "none"}


def is_from_our_page(request: web.Request, base: str) -> bool:
    """Whether nothing says that another site's page sent this request.

    A browser that tells Sec-Fetch-Site is believed; else its Origin must be that of `base`
    (the address guests are given) or the one it asked, and `null` is neither; without one it must
    carry no cookie.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in _OWN_SITES
    origin = request.headers.get("Origin")
    if origin is not None:
        return origin in {str(URL(base).origin()), f"{request.scheme}://{request.host}"}
    return "Cookie" not in request.headers
