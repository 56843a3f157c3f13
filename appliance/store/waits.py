"""The waits of pending retries: `due_uptime` is exact within a boot, `due_at` leads beyond it."""

from collections.abc import Sequence

from appliance.store.connection import Transaction

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
