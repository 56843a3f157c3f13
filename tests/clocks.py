"""A clock for tests and benchmarks."""

from appliance.clock import parse_instant


class StoppedClock:
    """A clock that changes only when it is set."""

    def __init__(self, instant: str = "2026-11-21T19:00:00Z") -> None:
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
