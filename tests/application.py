"""The real application, for tests that start many: what all of a run share is made once."""

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
    """What Jinja made of each template. A template that has changed is another one."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], Any] = {}

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        bucket.code = self._made.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        self._made[bucket.key, bucket.checksum] = bucket.code


_COMPILED = _Compiled()
# The files and templates of all applications of a run are the same.
rendering.StaticFiles = cache(rendering.StaticFiles)  # type: ignore[assignment,misc]
rendering.make_templates = cache(rendering.make_templates)


def _add(
    app: web.Application, method: str, path: str, handler: Handler, principal: Principal
) -> None:
    """As the application's own, but the route is added to a router that all share."""
    app.setdefault(HANDLERS, {})[method, path] = handler
    app[PRINCIPALS][method, path] = principal


application._add = _add


@cache
def _router_of(routes: tuple[tuple[str, str], ...]) -> web.UrlDispatcher:
    """A router whose handlers are those of the application that it serves; 400 take 25 ms."""

    def handler_of(route: tuple[str, str]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await request.app[HANDLERS][route](request)

        return handle

    router = web.UrlDispatcher()
    for method, path in routes:
        router.add_route(method, path, handler_of((method, path)))
    return router


def application_of(box: Box, certificates: Certificates | None = None) -> web.Application:
    """What `venuebox serve` serves of `box`."""
    app = application.build_application(box, certificates)
    app._router = _router_of(tuple(app[HANDLERS]))
    share_templates(app)
    return app


def share_templates(app: web.Application) -> None:
    """Let `app` take what others have compiled."""
    app[TEMPLATES].bytecode_cache = _COMPILED
