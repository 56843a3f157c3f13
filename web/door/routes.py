"""The door app on one screen: method, path, handler."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from web.door.page import door_page, manifest, reader, service_worker

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

DOOR_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/door", door_page),
    ("GET", "/door/manifest.webmanifest", manifest),
    ("GET", "/door/service-worker.js", service_worker),
    ("GET", "/door/reader.js", reader),
)
