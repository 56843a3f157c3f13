"""A partner's webhook receiver: answers 200 after 20 ms.

`GET /count` says how many came; `GET /arrivals` which, and when by the machine's monotonic
clock, since it was asked before. Run as `python receiver.py PORT`.
"""

import asyncio
import sys
import time

from aiohttp import web

DELAY_S = 0.020
_NAMED = b'"serviceReservationId":"'
_ID_LENGTH = 36


def application() -> web.Application:
    """Notes what arrives at `POST /hook`."""
    count = 0
    arrivals: dict[str, float] = {}

    async def hook(request: web.Request) -> web.Response:
        nonlocal count
        now = time.monotonic()
        body = await request.read()
        count += 1
        start = body.find(_NAMED) + len(_NAMED)
        arrivals[body[start : start + _ID_LENGTH].decode()] = now
        await asyncio.sleep(DELAY_S)
        return web.Response()

    async def counted(request: web.Request) -> web.Response:
        del request
        return web.json_response(count)

    async def arrived(request: web.Request) -> web.Response:
        del request
        found = dict(arrivals)
        arrivals.clear()
        return web.json_response(found)

    app = web.Application()
    app.router.add_post("/hook", hook)
    app.router.add_get("/count", counted)
    app.router.add_get("/arrivals", arrived)
    return app


if __name__ == "__main__":
    web.run_app(application(), host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
