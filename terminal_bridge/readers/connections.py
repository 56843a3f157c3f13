"""Who is connected to a line reader: so many, so many of one device, the busiest kept."""

import asyncio
from collections import Counter
from dataclasses import dataclass

MOST_CONNECTIONS = 16
MOST_OF_AN_ADDRESS = 8  # a serial server with eight scanners is one address


@dataclass(eq=False, slots=True)
class Connection:
    """One that is served by `task`. `heard_at` is the loop's time of its latest word."""

    address: str
    task: asyncio.Task[None]
    heard_at: float
    is_busy: bool = False


class Connections:
    """Room for some. Who comes when there is none takes the place of who said nothing longest."""

    def __init__(self) -> None:
        self._held: set[Connection] = set()

    def enter(self, address: str, task: asyncio.Task[None], now: float) -> Connection | None:
        """A place for a newcomer, or None when everybody whose place it could take is busy.

        Too many of one address make room among themselves. Otherwise the address that holds
        the most gives way: nobody shuts the others out by holding many.
        """
        held = Counter(each.address for each in self._held)
        if held[address] >= MOST_OF_AN_ADDRESS:
            giving = {address}
        elif held.total() >= MOST_CONNECTIONS:
            most = max(held.values())
            giving = {each for each, count in held.items() if count == most}
        else:
            giving = set()
        if giving:
            quiet = [each for each in self._held if each.address in giving and not each.is_busy]
            if not quiet:
                return None
            idlest = min(quiet, key=lambda each: each.heard_at)
            self._held.discard(idlest)
            idlest.task.cancel()
        entered = Connection(address, task, now)
        self._held.add(entered)
        return entered

    def leave(self, connection: Connection) -> None:
        """It is gone; it may have been shown out before."""
        self._held.discard(connection)
