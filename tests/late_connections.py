"""Close connections that are still open when a test's event loop ends.

Before Python 3.12, asyncio leaves a connection half open if the server accepts it while the server
is being closed. The garbage collector later reports it during an unrelated test.
"""

import asyncio
import socket
from asyncio import selector_events
from typing import Any

_TURNS = 20  # maximum turns of the loop until aborted connections are gone


def watch_event_loops() -> None:
    """From now on, closed servers refuse late connections, and loops abort open ones at their end.

    If the test or the product opened a connection itself and left it open, the test fails with an
    AssertionError.
    """
    loops = selector_events.BaseSelectorEventLoop
    accept, close = loops._accept_connection2, loops.close

    async def turn_away_or_accept(
        loop: Any, factory: Any, taken: socket.socket, *rest: Any, **named: Any
    ) -> None:
        server = named.get("server") or next((r for r in rest if hasattr(r, "sockets")), None)
        if server is not None and not server.sockets:
            taken.close()
        else:
            await accept(loop, factory, taken, *rest, **named)

    def close_after_dropping(loop: Any) -> None:
        forgotten = [] if loop.is_closed() or loop.is_running() else _drop(loop)
        close(loop)
        assert not forgotten, f"left open when the event loop ended: {', '.join(forgotten)}"

    loops._accept_connection2, loops.close = turn_away_or_accept, close_after_dropping


def _drop(loop: Any) -> list[str]:
    """Abort open connections. Return those that only their own opener could have closed."""
    forgotten = []
    for _ in range(_TURNS):
        still = [each for each in list(loop._transports.values()) if each._sock is not None]
        if not still:
            break
        for transport in still:
            if transport._server is None and not transport.is_closing():
                forgotten.append(f"{transport._sock!r} of {transport.get_protocol()!r}")
            transport.abort()
        loop.run_until_complete(asyncio.sleep(0))
    return forgotten
