"""The watchdog: an event loop that stands still ends the process, and the service starts anew.

It needs no systemd: a thread looks whether the loop still turns. systemd is told from the loop
itself, so that it hears nothing when the loop stands still.
"""

import asyncio
import faulthandler
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from appliance.upkeep.sd_notify import sd_notify, watchdog_seconds

PATIENCE = 30.0  # seconds, G10
_BEAT = 1.0
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
    """Belongs to the loop that makes it."""

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
        self._turned_at = time.monotonic()
        self._late = 0.0
        self._told_at = 0.0
        self._tell_every = watchdog_seconds(environ)
        self._alarm: asyncio.TimerHandle | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    @property
    def late(self) -> float:
        """By how many seconds the loop was late at its latest beat."""
        return self._late

    def start(self) -> None:
        """Watch from now on."""
        self._beat_in(_BEAT)
        self._thread.start()

    def close(self) -> None:
        """Watch no longer."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._closed.set()
        self._thread.join()

    def _beat_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        due = time.monotonic() + seconds
        self._alarm = loop.call_later(seconds, self._beat, due)

    def _beat(self, due: float) -> None:
        now = time.monotonic()
        self._turned_at, self._late = now, max(now - due, 0.0)
        if self._tell_every is not None and now - self._told_at >= self._tell_every:
            self._told_at = now
            sd_notify(self._environ, "WATCHDOG=1")
        self._beat_in(min(_BEAT, self._tell_every or _BEAT))

    def _watch(self) -> None:
        looked_at = time.monotonic()
        while not self._closed.wait(self._patience / 10):
            now = time.monotonic()
            if now - looked_at > self._patience / 2:  # the whole machine stood still
                self._turned_at = now
            looked_at = now
            if now - self._turned_at > self._patience:
                self._end()
                return

    def _end(self) -> None:
        try:
            with self._dump.open("w", encoding="utf-8") as file:
                faulthandler.dump_traceback(file)
        except OSError:
            faulthandler.dump_traceback()
        self._leave()
