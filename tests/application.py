"""The real application for tests, which share its slow parts within a run."""

from functools import cache
from typing import Any

import jinja2
from aiohttp import web

from appliance.box import Box
from appliance.http.request import PRINCIPALS, Handler, Principal
from appliance.tls.certificates import Certificates
from web import application, rendering
from web.rendering import TEMPLATES

Handlers = dict[tuple[str, str], Handler]
HANDLERS: web.AppKey[Handlers] = web.AppKey("handlers", dict)


class _Compiled(jinja2.BytecodeCache):
    """A cache of compiled Jinja templates. The key contains the template's checksum."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], Any] = {}

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        bucket.code = self._made.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        self._made[bucket.key, bucket.checksum] = bucket.code


_COMPILED = _Compiled()
# All applications of a run have the same files and templates.
rendering.StaticFiles = cache(rendering.StaticFiles)  # type: ignore[assignment,misc]
rendering.make_templates = cache(rendering.make_templates)


def _add(
    app: web.Application, method: str, path: str, handler: Handler, principal: Principal
) -> None:
    """Add a route as the application does, but to a router that all applications share."""
    app.setdefault(HANDLERS, {})[method, path] = handler
    app[PRINCIPALS][method, path] = principal


application._add = _add


@cache
def _router_of(routes: tuple[tuple[str, str], ...]) -> web.UrlDispatcher:
    """Return a shared router that calls the handlers of the requested application.

    Adding 400 routes takes 25 ms.
    """

    def handler_of(route: tuple[str, str]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await request.app[HANDLERS][route](request)

        return handle

    router = web.UrlDispatcher()
    for method, path in routes:
        router.add_route(method, path, handler_of((method, path)))
    return router


def application_of(box: Box, certificates: Certificates | None = None) -> web.Application:
    """Return the application that `venuebox serve` runs for `box`."""
    app = application.build_application(box, certificates)
    app._router = _router_of(tuple(app[HANDLERS]))
    share_templates(app)
    return app


def share_templates(app: web.Application) -> None:
    """Let `app` use the cache of compiled templates."""
    app[TEMPLATES].bytecode_cache = _COMPILED
