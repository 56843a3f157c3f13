"""Retry delays: 1 min, 5 min, 30 min, 2 h, 12 h."""

from collections.abc import Callable

from msgspec import Struct

DELAYS_MS = (60_000, 300_000, 1_800_000, 7_200_000, 43_200_000)


class Step(Struct, frozen=True):
    """A delivery's new state, number of charged attempts, and ms until the next attempt."""

    state: str
    attempts: int
    wait_ms: int = 0


def next_step(attempts: int, *, delivered: bool, charged: bool, draw: Callable[[], float]) -> Step:
    """Return the step after an attempt. `attempts` is the number of earlier charged attempts.

    An attempt is not charged if the box caused its failure. The delivery is then due again as soon
    as the queue resumes. The delay before a retry is extended by a random time of up to 10 %, but
    at most 60 s. For this, `draw` must return a uniform random number in [0, 1).
    """
    if delivered:
        return Step("delivered", attempts + 1)
    if not charged:
        return Step("pending", attempts)
    made = attempts + 1
    if made > len(DELAYS_MS):
        return Step("dead", made)
    delay = DELAYS_MS[made - 1]
    return Step("pending", made, delay + int(draw() * min(delay // 10, 60_000)))
