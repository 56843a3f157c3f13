"""A clock for tests and benchmarks."""

from appliance.clock import BoxClock, parse_instant


class StoppedClock:
    """A clock that changes only when it is set. `synchronised` is the kernel's report."""

    def __init__(self, instant: str = "2026-11-21T19:00:00Z") -> None:
        self.synchronised = True
        self.milliseconds = parse_instant(instant)
        self.seconds = 1000.0

    def now(self) -> int:
        return self.milliseconds

    def monotonic(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        """Advance both clocks by `seconds`."""
        self.milliseconds += round(seconds * 1000)
        self.seconds += seconds

    def set(self, instant: str) -> None:
        """Set the wall clock to `instant`. The monotonic clock does not change."""
        self.milliseconds = parse_instant(instant)


def box_clock(machine: StoppedClock) -> BoxClock:
    """Return the clock of a box on a machine with this clock."""
    return BoxClock(machine, lambda: machine.synchronised)


def doubt(clock: BoxClock) -> None:
    """Set the machine's clock far ahead of the box's stored times, without a time server."""
    clock.machine.synchronised = False  # type: ignore[attr-defined]
    clock.believe(0)
