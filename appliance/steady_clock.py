"""The box's own time: the machine's, but for a step that nothing has confirmed.

A clock that leaps while the box runs would turn tonight's guests away and log everybody out.
So the box counts on by the uptime from where the clock was last good, until the new time is
believed (clock_trust.py). What is signed or checked by the machine's clock keeps to that one.
"""

import threading
from collections.abc import Callable

from appliance.clock import Clock
from appliance.clock_trust import BUILT_AT, ClockMark, ClockTrust, Synchronised, read_both


class SteadyClock:
    """Tells the machine's time while it is trusted, and goes on counting while it is not.

    Any thread may ask. Trusted, a question costs three readings and two subtractions.
    """

    def __init__(
        self,
        machine: Clock,
        boot: str,
        uptime: Callable[[], int],
        synchronised: Synchronised,
        grace_ms: int,
        built_at: int = BUILT_AT,
    ) -> None:
        """As ClockTrust."""
        self.machine = machine
        self._uptime = uptime
        self._trust = ClockTrust(machine, boot, uptime, synchronised, grace_ms, built_at)
        self._boot = boot
        self._past = built_at
        self._past_uptime = uptime()
        self._offset: int | None = None
        self._trusted = False
        self._lock = threading.Lock()

    def remember(self, mark: ClockMark | None) -> None:
        """Begin with what was written before: in the same boot, where the clock was good."""
        with self._lock:
            self._trust.remember(mark)
            if mark is not None:
                self._past = max(self._past, mark.at)
                self._offset = mark.offset if mark.boot == self._boot else None

    def now(self) -> int:
        """Milliseconds since 1970 in UTC: the machine's word, or what the box knows better."""
        with self._lock:
            told, uptime = read_both(self.machine, self._uptime)
            if not self._trusted or self._trust.was_set_by(told, uptime):
                self._trusted = self._trust.look_at(told, uptime).trusted
            if self._trusted:
                self._offset = told - uptime
                return told
            if self._offset is not None:
                return uptime + self._offset
            return max(told, self._past + uptime - self._past_uptime)

    def monotonic(self) -> float:
        """The machine's: it never steps."""
        return self.machine.monotonic()
