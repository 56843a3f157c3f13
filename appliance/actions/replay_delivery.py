"""Replay deliveries: same id, one attempt now, then the retries (docs/decisions/webhooks.md).

`due_uptime` 0 is now in whatever boot, and makes a delivery one of its endpoint's retries:
however many are replayed, they take no slot from what has just happened.
"""

import json
from dataclasses import dataclass

from appliance.actions.register_endpoint import EndpointsChanged
from appliance.house_errors import EndpointIsInactive
from appliance.store.connection import Transaction, known
from appliance.store.endpoints import get_endpoint

PAGE = 500  # rows that one transaction looks at: a few milliseconds
_FOREVER = 2**62
# What is about to be sent for the first time, or is replayed already, is left as it is.
_REPLAY = """
    UPDATE delivery
    SET state = 'pending', attempts = 0, due_at = :now, due_boot = NULL, due_uptime = 0,
        finished_at = NULL, replays = replays + 1
    WHERE NOT (state = 'pending' AND attempts = 0 AND coalesce(due_uptime, 0) = 0)
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which deliveries: of an endpoint, in these states, of events in [since, until)."""

    endpoint_id: str
    states: tuple[str, ...] = ("dead",)
    since: int = 0
    until: int = _FOREVER


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replay has got: deliveries looked at up to `after`, of those up to `last`."""

    after: int
    last: int
    replayed: int

    @property
    def done(self) -> bool:
        """Whether every delivery was looked at that was there at the beginning."""
        return self.after >= self.last


def replay_delivery(tx: Transaction, delivery_id: str) -> bool:
    """Send it once more; False when it is about to be sent anyway, so that twice is once.

    An attempt under way is not joined by a second one: the new one follows it, unless it
    succeeds. NotFound if unknown, EndpointIsInactive if nobody would receive it.
    """
    sql = "SELECT endpoint_id FROM delivery WHERE id = :id"
    endpoint_id = known(tx.value(sql, {"id": delivery_id}))
    return _replay(tx, endpoint_id, "id = :id", {"id": delivery_id}) > 0


def replay_deliveries(
    tx: Transaction, selection: Selection, progress: Progress | None = None
) -> Progress:
    """Replay the next page of `selection`; call it with what it returned until that is done.

    As `replay_delivery` does for each. What happens meanwhile is not replayed. NotFound if
    the endpoint is unknown, EndpointIsInactive if it receives nothing.
    """
    begun = progress or Progress(0, tx.value("SELECT coalesce(max(seq), 0) FROM delivery"), 0)
    sql = """SELECT max(seq) FROM (SELECT seq FROM delivery WHERE seq > :after AND seq <= :last
                                   ORDER BY seq LIMIT :size)"""
    end = tx.value(sql, {"after": begun.after, "last": begun.last, "size": PAGE})
    replayed = _replay(
        tx,
        selection.endpoint_id,
        """seq > :after AND seq <= :end AND +endpoint_id = :endpoint_id
           AND state IN (SELECT value FROM json_each(:states))
           AND (SELECT occurred_at FROM event WHERE event.seq = event_seq)
               BETWEEN :since AND :until - 1""",
        {"after": begun.after, "end": end, "endpoint_id": selection.endpoint_id,
         "states": json.dumps(selection.states), "since": selection.since,
         "until": selection.until},
    )  # fmt: skip
    return Progress(begun.last if end is None else end, begun.last, begun.replayed + replayed)


def _replay(tx: Transaction, endpoint_id: str, where: str, bound: dict[str, object]) -> int:
    """Make due now what fits; how many that were."""
    if not get_endpoint(tx, endpoint_id).active:
        raise EndpointIsInactive(state="inactive")
    replayed = tx.execute(f"{_REPLAY} AND {where}", {"now": tx.now, **bound})
    if replayed:
        tx.notices.append(EndpointsChanged(endpoint_id))
    return replayed
