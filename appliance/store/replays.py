"""Sending deliveries once more: the same rows, with the ladder before them again.

`due_uptime` 0 is now in whatever boot, and makes a delivery one of the retries of its lane:
however many are replayed, they take no slot from what has just happened.
"""

import json
from collections.abc import Sequence

from appliance.store.connection import Transaction

_REPLAY = """
    UPDATE delivery
    SET state = 'pending', attempts = 0, due_at = :now, due_boot = NULL, due_uptime = 0,
        finished_at = NULL, replays = replays + 1
"""
# What is about to be sent for the first time, or is replayed already, is left as it is.
_NOT_YET = "NOT (state = 'pending' AND attempts = 0 AND coalesce(due_uptime, 0) = 0)"


def find_endpoint_of(tx: Transaction, delivery_id: str) -> str | None:
    """The id of the endpoint that a delivery goes to."""
    found = tx.value("SELECT endpoint_id FROM delivery WHERE id = :id", {"id": delivery_id})
    return None if found is None else str(found)


def replay_one(tx: Transaction, delivery_id: str) -> bool:
    """Make a delivery due now; False when it is anyway."""
    changed = tx.execute(
        f"{_REPLAY} WHERE id = :id AND {_NOT_YET}", {"id": delivery_id, "now": tx.now}
    )
    return changed > 0


def last_delivery(tx: Transaction) -> int:
    """The number of the newest delivery, 0 when there is none."""
    return int(tx.value("SELECT coalesce(max(seq), 0) FROM delivery"))


def end_of_page(tx: Transaction, after: int, up_to: int, size: int) -> int | None:
    """The number of the last of the next `size` deliveries, of whatever endpoint."""
    found = tx.value(
        """SELECT max(seq) FROM (
               SELECT seq FROM delivery WHERE seq > :after AND seq <= :up_to
               ORDER BY seq LIMIT :size)""",
        {"after": after, "up_to": up_to, "size": size},
    )
    return None if found is None else int(found)


def replay_between(
    tx: Transaction,
    endpoint_id: str,
    states: Sequence[str],
    period: tuple[int, int],
    numbers: tuple[int, int],
) -> int:
    """Make due now what an endpoint was sent of the events of a period; how many that were.

    Looks at the deliveries after the first number, up to the second. The period is in ms
    since 1970 and does not include its end.
    """
    return tx.execute(
        f"""{_REPLAY}
            WHERE seq > :after AND seq <= :end AND +endpoint_id = :endpoint_id
                AND state IN (SELECT value FROM json_each(:states)) AND {_NOT_YET}
                AND (SELECT occurred_at FROM event WHERE event.seq = event_seq)
                    BETWEEN :since AND :until - 1""",  # noqa: S608 - made of constants
        {
            "now": tx.now,
            "after": numbers[0],
            "end": numbers[1],
            "endpoint_id": endpoint_id,
            "states": json.dumps(list(states)),
            "since": period[0],
            "until": period[1],
        },
    )
