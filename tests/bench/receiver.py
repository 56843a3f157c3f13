"""A partner's webhook receiver: answers 200 after 20 ms. `GET /count` says how many came.

Run as `python receiver.py PORT`.
"""

import asyncio
import sys

from aiohttp import web

DELAY_S = 0.020


def application() -> web.Application:
    """Counts what arrives at `POST /hook`."""
    count = 0

    async def hook(request: web.Request) -> web.Response:
        nonlocal count
        await request.read()
        count += 1
        await asyncio.sleep(DELAY_S)
        return web.Response()

    async def counted(request: web.Request) -> web.Response:
        del request
        return web.json_response(count)

    app = web.Application()
    app.router.add_post("/hook", hook)
    app.router.add_get("/count", counted)
    return app


if __name__ == "__main__":
    web.run_app(application(), host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
