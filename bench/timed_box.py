"""`venuebox serve` with a watch on each scan: `python -m bench.timed_box FILE serve …`.

A decision begins when its request comes to our handler, and ends with the answer that the
handler returns, which is after the COMMIT. At the end the file has a line for each: when it
began and how long it took, in seconds of the machine's monotonic clock.
"""

import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from terminal_bridge import api

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def main() -> int:
    """Serve until a signal, and write down what was seen."""
    seen: list[tuple[float, float]] = []

    def timed(handler: Handler) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            begun = time.perf_counter()
            answer = await handler(request)
            seen.append((begun, time.perf_counter() - begun))
            return answer

        return handle

    api.TERMINAL_ROUTES = tuple(
        (method, path, timed(handler) if path == "/terminal/v1/scans" else handler)
        for method, path, handler in api.TERMINAL_ROUTES
    )
    from web.main import main as venuebox  # noqa: PLC0415 - it takes the routes as they are then

    status = venuebox(sys.argv[2:])
    Path(sys.argv[1]).write_text("".join(f"{begun:.9f} {took:.9f}\n" for begun, took in seen))
    return status


if __name__ == "__main__":
    sys.exit(main())
