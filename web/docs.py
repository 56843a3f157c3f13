"""The description of the partner interface, for programs (`/openapi.json`) and people (`/docs`)."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from aiohttp import web

from appliance.environment import path_prefix
from terminal_bridge.context import ENVIRONMENT
from web.api.openapi.document import PartnerRoute, build_document, describe_servers
from web.rendering import LANGUAGES, render
from web.wire import answer

PARTNER_ROUTES: web.AppKey[Sequence[PartnerRoute]] = web.AppKey("partner_routes")

_HEADERS = {
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# One concession over every other page: Swagger UI's stylesheet carries its icons as data: images.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def show_document(request: web.Request) -> web.Response:
    """`GET /openapi.json`: the OpenAPI 3.1 document, this environment's server first."""
    servers = describe_servers(_public_base(request), request[ENVIRONMENT].name)
    document = build_document(request.config_dict[PARTNER_ROUTES], servers)
    return answer(document, headers=_HEADERS)


async def show_docs(request: web.Request) -> web.Response:
    """`GET /docs`: the same, to read and to try. Nothing on it comes from outside the box."""
    environment = request[ENVIRONMENT]
    base = _public_base(request) or f"{request.scheme}://{request.host}"
    values: dict[str, object] = {
        "document_url": f"{path_prefix(environment.name)}/openapi.json",
        "live_base": base,
        "test_base": base + path_prefix("test"),
        "live_docs_url": f"{path_prefix('live')}/docs",
        "test_docs_url": f"{path_prefix('test')}/docs",
    }
    english = request.config_dict[LANGUAGES].get("en")
    return web.Response(
        text=render(request, "docs.html", english, values),
        content_type="text/html",
        charset="utf-8",
        headers={**_HEADERS, "Content-Security-Policy": _POLICY, "Content-Language": "en"},
    )


def _public_base(request: web.Request) -> str:
    """`server.app_url` when that is the host that was asked, else empty: relative to here.

    A page opened at another address of the box may only call where it came from.
    """
    base = request[ENVIRONMENT].settings.server.app_url
    return base if base and urlsplit(base).netloc == request.host else ""


DOCS_ROUTES = (("GET", "/openapi.json", show_document), ("GET", "/docs", show_docs))
