"""The bare peer: aiohttp that parses the request and answers a JSON value or a page, and no more.

Run as `python bare.py PORT SAMPLES`; SAMPLES is a JSON file `{path: value}` with what the
box itself answered, so that the bare answers have the same size and shape.
"""

import json
import sys
from pathlib import Path

from aiohttp import web

BOOK, READ, SCAN, PAGE = "/book", "/read", "/scan", "/page"


def application(samples: dict[str, object]) -> web.Application:
    """Every route answers its sample."""

    async def post(request: web.Request) -> web.Response:
        body = await request.json()
        if not isinstance(body, dict):
            raise web.HTTPBadRequest
        return web.json_response(samples[request.path], status=201)

    async def read(request: web.Request) -> web.Response:
        del request
        return web.json_response(samples[READ])

    async def page(request: web.Request) -> web.Response:
        del request
        return web.Response(text=str(samples[PAGE]), content_type="text/html")

    app = web.Application()
    app.router.add_post(BOOK, post)
    app.router.add_post(SCAN, post)
    app.router.add_get(READ, read)
    app.router.add_get(PAGE, page)
    return app


if __name__ == "__main__":
    web.run_app(
        application(json.loads(Path(sys.argv[2]).read_text())),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        access_log=None,
        print=None,
    )
