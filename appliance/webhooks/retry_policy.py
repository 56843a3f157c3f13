"""Retries: 1 min, 5 min, 30 min, 2 h, 12 h; and due times after a restart or a clock step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from appliance.database.connection import Transaction

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


BATCH = 500
_AGREE_MS = 1_000


def settle_some_waits(
    tx: Transaction, endpoint_id: str, after: tuple[int, int], boot: str, uptime: int,
    longest_waits: Sequence[int],
) -> tuple[int, int] | None:  # fmt: skip
    """Make `due_uptime` and `due_at` of some retries agree; where to go on, None at the end.

    Of another boot: what is left is told by the clock, and is never more than the ladder
    could have asked for: `longest_waits[n]` after n charged attempts, in ms. Of this boot:
    the uptime is right, whatever the clock was set to.
    """
    sql = """SELECT seq, due_uptime, due_at, due_boot IS :boot, attempts FROM delivery
             WHERE state = 'pending' AND endpoint_id = :endpoint_id
                 AND (due_uptime, seq) > (:uptime, :seq)
             ORDER BY due_uptime, seq LIMIT :limit"""
    last_uptime, last_seq = after
    page = {"endpoint_id": endpoint_id, "uptime": last_uptime, "seq": last_seq, "limit": BATCH}
    rows = list(tx.rows(sql, {"boot": boot, **page}))
    changes = []
    for seq, due_uptime, due_at, of_this_boot, attempts in rows:
        left = due_uptime - uptime
        if not of_this_boot:
            longest = longest_waits[min(attempts, len(longest_waits) - 1)]
            left = min(max(due_at - tx.now, 0), longest)
        elif abs(tx.now + left - due_at) < _AGREE_MS:
            continue
        changes.append((tx.now + left, uptime + left, boot, seq))
    if changes:
        sql = "UPDATE delivery SET due_at = ?, due_uptime = ?, due_boot = ? WHERE seq = ?"
        tx.execute_each(sql, changes)
    return (rows[-1][1], rows[-1][0]) if len(rows) == BATCH else None
