"""The door app's page, manifest and service worker, and their routes.

The page is the same for every caller and contains neither secrets nor reservations, so the service
worker may cache it. The app loads its data through the terminal protocol.
"""

import gzip
import hashlib
import json
from functools import cache

from aiohttp import web

from appliance.core.i18n import Language
from appliance.http.request import ENVIRONMENT
from appliance.http.security_headers import page_headers
from web.middleware import SECURE
from web.rendering import LANGUAGES, STATIC_FILES, make_templates, render

_HEADERS = {
    **page_headers(
        img_src="'self' blob: data:",
        media_src="'self' blob:",
        worker_src="'self'",
        form_action="'none'",
    ),
    "Permissions-Policy": "camera=(self), screen-wake-lock=(self)",
    "Referrer-Policy": "no-referrer",
}
# The policy of the QR reader's worker. Only this worker compiles WebAssembly, so the page's policy
# does not allow it.
_READER_POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'"
_SCRIPT, _READER, _WORKER = "door.js", "door-reader.js", "door-service-worker.js"
_WASM = "zxing_reader.wasm"
_PAGES_MAX = 32
DOOR_PAGES: web.AppKey[dict[tuple[str, str, str], tuple[bytes, bytes]]] = web.AppKey("door_pages")
"""The app's pages as text and compressed, by start page, language and https URL.

They are kept, because making one takes 4 ms, which would delay scans.
"""
# An example number for each of Unicode's plural categories.
_PLURAL_NUMBERS = {"zero": 0, "one": 1, "two": 2, "few": 3, "many": 11, "other": 100}


async def door_page(request: web.Request) -> web.Response:
    """`GET /door`: show the door app."""
    language = request.config_dict[LANGUAGES].of(request)
    text, compressed = _page(request, language)
    headers = {**_HEADERS, "Content-Language": language.code, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        text = compressed
        headers["Content-Encoding"] = "gzip"
    return web.Response(body=text, content_type="text/html", charset="utf-8", headers=headers)


async def manifest(request: web.Request) -> web.Response:
    """`GET /door/manifest.webmanifest`: return the manifest that phones need to install the app."""
    language = request.config_dict[LANGUAGES].of(request)
    values: dict[str, object] = {"start": _start(request)}
    return web.Response(
        text=render(request, "door/manifest.webmanifest", language, values),
        content_type="application/manifest+json",
        headers=_HEADERS | {"Cache-Control": "no-cache"},
    )


async def service_worker(request: web.Request) -> web.Response:
    """`GET /door/service-worker.js`: return the script that caches the app on the phone.

    The script changes whenever a cached file does, so browsers detect an update.
    """
    shell = json.dumps(_shell(request))
    script = f"self.shell={shell};\nimportScripts({json.dumps(_asset(request, _WORKER))});\n"
    headers = {"Cache-Control": "no-cache", "Service-Worker-Allowed": _start(request)}
    return web.Response(
        text=script, content_type="text/javascript", charset="utf-8", headers=_HEADERS | headers
    )


async def reader(request: web.Request) -> web.StreamResponse:
    """`GET /door/reader.js`: return the worker script that decodes QR codes in images."""
    response = request.config_dict[STATIC_FILES].respond(_READER, request.query.get("v", ""))
    response.headers["Content-Security-Policy"] = _READER_POLICY
    return response


def _page(request: web.Request, language: Language) -> tuple[bytes, bytes]:
    """Return the app's page, plain and compressed."""
    pages = request.config_dict[DOOR_PAGES]
    key = (_start(request), language.code, secure_door(request))
    if key not in pages:
        if len(pages) >= _PAGES_MAX:
            pages.clear()
        text = render(request, "door/app.html", language, _values(request, language)).encode()
        pages[key] = text, gzip.compress(text)
    return pages[key]


@cache
def door_words(language: Language) -> dict[str, str]:
    """Return the app's texts by name. The script replaces placeholders such as `{count}`.

    `guests.<category>` is the text for a Unicode plural category, e.g. `guests.few`.
    """
    template = make_templates().get_template("door/words.html")
    words: dict[str, str] = dict(vars(template.make_module({"_": language.gettext}))["words"])
    for category, number in _PLURAL_NUMBERS.items():
        guests = language.ngettext("%(count)s guest", "%(count)s guests", number, count="{count}")
        words[f"guests.{category}"] = guests
    return words


def _values(request: web.Request, language: Language) -> dict[str, object]:
    return {
        "words": door_words(language),
        "all_words": {
            each.code: {"name": each.name, "direction": each.direction, "words": door_words(each)}
            for each in request.config_dict[LANGUAGES].all()
        },
        "start": _start(request),
        "terminal": f"{request[ENVIRONMENT].prefix}/terminal/v1",
        "reader": _reader_url(request),
        "wasm": _asset(request, _WASM),
        "secure_url": secure_door(request),
    }


def _shell(request: web.Request) -> dict[str, object]:
    names = (_SCRIPT, "door.css", _WASM, "icon.svg", "door-192.png", "door-512.png")
    assets = [_asset(request, name) for name in names]
    kept = [*assets, _reader_url(request), f"{_start(request)}/manifest.webmanifest"]
    language = request.config_dict[LANGUAGES].get(None)
    page, _compressed = _page(request, language)
    version = hashlib.sha256(b"\n".join([page, *map(str.encode, kept)])).hexdigest()[:16]
    return {"name": f"venuebox-door-{request[ENVIRONMENT].name}", "version": version,
            "page": _start(request), "assets": kept}  # fmt: skip


def _reader_url(request: web.Request) -> str:
    version = _asset(request, _READER).partition("?")[2]
    return f"{_start(request)}/reader.js?{version}"


def _start(request: web.Request) -> str:
    return f"{request[ENVIRONMENT].prefix}/door"


def _asset(request: web.Request, name: str) -> str:
    return request.config_dict[STATIC_FILES].url(name)


def secure_door(request: web.Request) -> str:
    """Return the door app's https URL or, if the box has no https, its URL in `links.base`."""
    base = request.app[SECURE].base_for(request)
    environment = request[ENVIRONMENT]
    return f"{environment.links.base}/door" if base is None else f"{base}{environment.prefix}/door"


DOOR_ROUTES = (
    ("GET", "/door", door_page),
    ("GET", "/door/manifest.webmanifest", manifest),
    ("GET", "/door/service-worker.js", service_worker),
    ("GET", "/door/reader.js", reader),
)
