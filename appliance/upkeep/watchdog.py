"""The watchdog: an event loop that stands still ends the process, and the service starts anew.

It needs no systemd: a thread looks whether the loop still turns, as long as it has work.
systemd is told from the loop itself, so that it hears nothing when the loop stands still.
"""

import asyncio
import faulthandler
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PATIENCE = 30.0  # seconds (docs/promises.md, G10)
_LOOK = 1.0  # seconds between two looks at a loop that works
_MOMENT = 0.01
_STATUS = 70  # sysexits: an internal fault


class Lateness:
    """How late the event loop is, for whoever asks."""

    async def measure(self) -> float:
        """Seconds that pass beyond a moment's sleep."""
        begun = time.monotonic()
        await asyncio.sleep(_MOMENT)
        return max(time.monotonic() - begun - _MOMENT, 0.0)


def _leave() -> None:
    os._exit(_STATUS)  # no handler can run: they would wait for the loop


class Watchdog:
    """Belongs to the loop that makes it.

    It watches while the loop works and sleeps while the loop does: an idle box is not woken.
    """

    def __init__(
        self,
        dump: Path,
        environ: Mapping[str, str],
        patience: float = PATIENCE,
        leave: Callable[[], None] = _leave,
    ) -> None:
        """`dump` receives where every thread stands, before the end."""
        self._dump = dump
        self._environ = environ
        self._patience = patience
        self._leave = leave
        self._turned_at: float | None = None  # None while the loop waits for something to do
        self._sleeps = False
        self._roused = threading.Event()
        self._closing = threading.Event()
        self._tell_every = watchdog_seconds(environ)
        self._alarm: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Watch from now on."""
        self._follow(asyncio.get_running_loop())
        self._turned_at = time.monotonic()
        self._thread.start()
        if self._tell_every is not None:
            self._tell(self._tell_every)

    def close(self) -> None:
        """Watch no longer."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._closing.set()
        self._roused.set()
        self._thread.join()

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """Note when the loop begins to wait and when it works: asyncio itself tells nobody."""
        selector: Any = loop._selector  # type: ignore[attr-defined] # noqa: SLF001 - see above
        wait = selector.select

        def select(timeout: float | None = None) -> Any:
            if timeout is None or timeout > 0:
                self._turned_at = None
            found = wait(timeout)
            self._turned_at = time.monotonic()
            if self._sleeps:
                self._sleeps = False
                self._roused.set()
            return found

        selector.select = select

    def _tell(self, every: float) -> None:
        """systemd wants to hear of it, idle or not."""
        sd_notify(self._environ, "WATCHDOG=1")
        self._alarm = asyncio.get_running_loop().call_later(every, self._tell, every)

    def _watch(self) -> None:
        while not self._closing.is_set():
            if self._turned_at is None:
                self._sleep()
            looked_at = time.monotonic()
            self._closing.wait(min(_LOOK, self._patience / 3))
            since, now = self._turned_at, time.monotonic()
            stood_still = now - looked_at > self._patience / 2  # the whole machine
            if since is not None and now - since > self._patience and not stood_still:
                self._end()
                return

    def _sleep(self) -> None:
        """Until the loop has something to do."""
        self._roused.clear()
        self._sleeps = True
        if self._turned_at is None and not self._closing.is_set():
            self._roused.wait()

    def _end(self) -> None:
        try:
            with self._dump.open("w", encoding="utf-8") as file:
                faulthandler.dump_traceback(file)
        except OSError:
            faulthandler.dump_traceback()
        self._leave()


def sd_notify(environ: Mapping[str, str], message: str) -> None:
    """Send `READY=1`, `WATCHDOG=1` or `STOPPING=1` to whoever started us, if he listens."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # a name without a file
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)  # noqa: FBT003 - the library's own way to say it
            sender.sendto(message.encode(), address)
    except OSError:
        return


def watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """How often systemd wants to hear of us, halved; None when it does not."""
    wanted = environ.get("WATCHDOG_USEC", "")
    meant = environ.get("WATCHDOG_PID")
    is_ours = meant is None or meant in _own_processes()
    return int(wanted) / 2_000_000 if wanted.isdecimal() and is_ours else None


def _own_processes() -> set[str]:
    """The one file starts itself once more: systemd knows the process that waits for this one."""
    is_one_file = getattr(sys, "frozen", False)
    return {str(os.getpid()), *([str(os.getppid())] if is_one_file else [])}
