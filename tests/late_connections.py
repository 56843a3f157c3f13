"""A test's event loop ends with no connection left open, whoever came at the last moment.

A connection that a server took in the turn in which it was closed is left open by asyncio before
Python 3.12, with its transport half made. The garbage collector complains of it whenever it comes
by, in a test that has nothing to do with it.
"""

import asyncio
import socket
from asyncio import selector_events
from typing import Any

_TURNS = 20  # of the loop, at most, until what is aborted is gone


def watch_event_loops() -> None:
    """From now on servers turn away who comes too late, and loops drop who is left at their end.

    A connection that the test or the product opened itself and left open is an AssertionError
    at the end of its own test.
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
    """Abort what is open; names what nobody but its opener could have closed."""
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
