"""Retry delays (1 min, 5 min, 30 min, 2 h, 12 h) and due times after a reboot or clock step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from appliance.database.connection import Transaction

DELAYS_MS = (60_000, 300_000, 1_800_000, 7_200_000, 43_200_000)
_SPREAD_MS = 60_000


@dataclass(frozen=True, slots=True)
class Step:
    """Result of an attempt: new state, number of charged attempts, wait before the next in ms."""

    state: str
    attempts: int
    wait_ms: int = 0


def next_step(attempts: int, *, delivered: bool, charged: bool, draw: Callable[[], float]) -> Step:
    """Return the step after an attempt. `attempts` is the number charged before it.

    `draw` is uniform in [0, 1): it delays a retry by up to 10 % of the scheduled delay, at most
    60 s. An attempt that is not charged keeps the count and is due again when its cause ends.
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
    """Maximum random delay added to `delay_ms`, in ms."""
    return min(delay_ms // 10, _SPREAD_MS)


def longest_wait(attempts: int) -> int:
    """Maximum wait of a delivery after `attempts` charged attempts, in ms."""
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
    """Make `due_uptime` and `due_at` of up to 500 retries agree. Returns the next cursor or None.

    Retries from an earlier boot: the clock gives the time left, at most `longest_waits[n]` ms
    after n charged attempts. Retries from this boot: the uptime is authoritative.
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
