"""What waits for each endpoint, and what never arrived there."""

from dataclasses import dataclass

from appliance.store.connection import Reader


@dataclass(frozen=True, slots=True)
class EndpointQueue:
    """Deliveries of one endpoint: `next_at` is when the next is due, 0 for at once."""

    pending: int
    dead: int
    next_at: int | None


def read_queue(reader: Reader, endpoint_id: str) -> EndpointQueue:
    """The endpoint's queue as it is now."""
    bound = {"endpoint_id": endpoint_id}
    pending = reader.value(
        "SELECT count(*) FROM delivery WHERE state = 'pending' AND endpoint_id = :endpoint_id",
        bound,
    )
    dead = reader.value(
        """SELECT count(*) FROM delivery
           WHERE endpoint_id = :endpoint_id AND state = 'dead' AND state <> 'pending'""",
        bound,
    )
    first = reader.row(
        """SELECT due_at, coalesce(due_uptime, 0) FROM delivery
           WHERE state = 'pending' AND endpoint_id = :endpoint_id
           ORDER BY due_uptime, seq LIMIT 1""",
        bound,
    )
    next_at = None if first is None else (first[0] if first[1] else 0)
    return EndpointQueue(int(pending), int(dead), next_at)
