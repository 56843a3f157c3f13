"""The partner interface described: a guide (`/docs`), a reference to try, and OpenAPI."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from aiohttp import web

from appliance.environment import path_prefix
from terminal_bridge.context import ENVIRONMENT
from web.api.openapi.document import PartnerRoute, build_document, describe_servers
from web.guide import read_guide
from web.public_page import public_page
from web.wire import answer

PARTNER_ROUTES: web.AppKey[Sequence[PartnerRoute]] = web.AppKey("partner_routes")

_HEADERS = {
    "Cache-Control": "no-cache",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


async def show_document(request: web.Request) -> web.Response:
    """`GET /openapi.json`: the OpenAPI 3.1 document, this environment's server first."""
    servers = describe_servers(_public_base(request), request[ENVIRONMENT].name)
    document = build_document(request.config_dict[PARTNER_ROUTES], servers)
    return answer(document, headers=_HEADERS)


async def show_guide(request: web.Request) -> web.Response:
    """`GET /docs`: docs/partners.md with its example programs, and the way to the reference."""
    guide = await read_guide()
    return public_page(request, "docs/guide.html", {**page_addresses(request), "guide": guide})


async def show_reference(request: web.Request) -> web.Response:
    """`GET /docs/reference`: every call, to read and to try. Nothing comes from outside the box."""
    # One concession over every other page: Swagger UI's stylesheet carries its icons as pictures.
    return public_page(
        request, "docs/reference.html", page_addresses(request), inline_pictures=True
    )


def page_addresses(request: web.Request) -> dict[str, object]:
    """The addresses that the partners' pages show, as whoever asks may use them."""
    name = request[ENVIRONMENT].name
    base = _public_base(request) or f"{request.scheme}://{request.host}"
    prefix, test = path_prefix(name), path_prefix("test")
    return {
        "document_url": f"{prefix}/openapi.json",
        "guide_url": f"{prefix}/docs",
        "reference_url": f"{prefix}/docs/reference",
        "sandbox_url": test,
        "live_base": base,
        "test_base": base + test,
        "live_reference_url": "/docs/reference",
        "test_reference_url": f"{test}/docs/reference",
    }


def _public_base(request: web.Request) -> str:
    """`server.app_url` when that is the host that was asked, else empty: relative to here.

    A page opened at another address of the box may only call where it came from.
    """
    base = request[ENVIRONMENT].settings.server.app_url
    return base if base and urlsplit(base).netloc == request.host else ""


DOCS_ROUTES = (
    ("GET", "/openapi.json", show_document),
    ("GET", "/docs", show_guide),
    ("GET", "/docs/reference", show_reference),
)
