"""Retry delays (1 min, 5 min, 30 min, 2 h, 12 h) and due times after a reboot or clock step."""

from collections.abc import Callable
from dataclasses import dataclass

from appliance.clock import SystemUptime
from appliance.database.connection import Transaction
from appliance.database.database import Database
from appliance.webhooks.endpoints import list_active_endpoints

DELAYS_MS = (60_000, 300_000, 1_800_000, 7_200_000, 43_200_000)


@dataclass(frozen=True, slots=True)
class Step:
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
    return Step("pending", made, delay + int(draw() * _longest_spread(delay)))


def _longest_spread(delay_ms: int) -> int:
    return min(delay_ms // 10, 60_000)


def _longest_wait(attempts: int) -> int:
    """Return the longest possible wait, in ms, after `attempts` charged attempts."""
    if not attempts:
        return 0
    delay = DELAYS_MS[min(attempts, len(DELAYS_MS)) - 1]
    return delay + _longest_spread(delay)


_AGREE_MS = 1_000


async def rebase_due_times(database: Database, uptime: SystemUptime) -> None:
    """Convert the due times of all pending retries to this boot's uptime and the current clock.

    Makes one write per endpoint, so that other writes can run between them. The clock must be
    trusted, because after a reboot only the clock shows how much of a wait is left.
    """
    for endpoint in await database.read(list_active_endpoints):
        await database.write(_rebase, endpoint.id, uptime)


def _rebase(tx: Transaction, endpoint_id: str, uptime: SystemUptime) -> None:
    """Make `due_uptime` and `due_at` agree for the retries of an endpoint.

    A retry that was scheduled during this boot keeps its due uptime. A retry that was scheduled
    before this boot keeps its due time by the clock, but waits no longer than the longest possible
    delay after its charged attempts.
    """
    boot, now = uptime.boot, uptime.milliseconds()
    sql = """SELECT seq, due_uptime, due_at, due_boot IS :boot, attempts FROM delivery
             WHERE state = 'pending' AND endpoint_id = :endpoint_id AND due_uptime IS NOT NULL"""
    rows = tx.rows(sql, {"boot": boot, "endpoint_id": endpoint_id})
    changes = []
    for seq, due_uptime, due_at, of_this_boot, attempts in rows:
        left = due_uptime - now
        if not of_this_boot:
            left = min(max(due_at - tx.now, 0), _longest_wait(attempts))
        elif abs(tx.now + left - due_at) < _AGREE_MS:
            continue
        changes.append((tx.now + left, now + left, boot, seq))
    sql = "UPDATE delivery SET due_at = ?, due_uptime = ?, due_boot = ? WHERE seq = ?"
    tx.execute_each(sql, changes)
