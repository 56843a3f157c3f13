"""The retry ladder: 1 min, 5 min, 30 min, 2 h, 12 h after the attempt before, then dead."""

from collections.abc import Callable
from dataclasses import dataclass

DELAYS_MS = (60_000, 300_000, 1_800_000, 7_200_000, 43_200_000)
_SPREAD_MS = 60_000


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of a delivery: its state, the charged attempts, and the wait if any."""

    state: str
    attempts: int
    wait_ms: int = 0


def next_step(attempts: int, *, delivered: bool, charged: bool, draw: Callable[[], float]) -> Step:
    """The step after an attempt, when `attempts` were charged before it.

    `draw` is uniform in [0, 1): a retry may come up to 10 % or 60 s later than the ladder
    says, never earlier. An attempt that is not charged is due again as soon as what it was
    not charged for is over, and stays on its rung.
    """
    if delivered:
        return Step("delivered", attempts + 1)
    if not charged:
        return Step("pending", attempts)
    made = attempts + 1
    if made > len(DELAYS_MS):
        return Step("dead", made)
    delay = DELAYS_MS[made - 1]
    wait = delay + int(draw() * longest_spread(delay))
    return Step("pending", made, wait)


def longest_spread(delay_ms: int) -> int:
    """How much later than `delay_ms` a retry may come."""
    return min(delay_ms // 10, _SPREAD_MS)


def longest_wait(attempts: int) -> int:
    """The longest that a delivery with so many charged attempts ever waits, in ms."""
    if not attempts:
        return 0
    delay = DELAYS_MS[min(attempts, len(DELAYS_MS)) - 1]
    return delay + longest_spread(delay)
