"""The log of deliveries a page at a time, newest event first.

A page is found by where the one before it ended, so that what arrives meanwhile moves nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from appliance.errors import NotFound
from appliance.store.connection import Reader

PAGE = 50
_FOREVER = 2**62

Place = tuple[int, int]  # the number of an event, and of a delivery of it


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """Which deliveries; None is any. The period is of events, in ms since 1970, [since, until)."""

    endpoint_id: str | None = None
    state: str | None = None
    event_type: str | None = None
    since: int | None = None
    until: int | None = None
    reservation_id: str | None = None


@dataclass(frozen=True, slots=True)
class ListedDelivery:
    """A line of the log. `last_outcome` is of its latest attempt that is still kept."""

    id: str
    state: str
    due_at: int
    due_now: int  # 1 or 0
    finished_at: int | None
    replays: int
    event_type: str
    occurred_at: int
    reservation_id: str | None
    endpoint_id: str
    endpoint_url: str
    attempts: int
    last_outcome: str | None
    last_status: int | None


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """Some lines, newest event first; `older` is where the next page begins, None at the end."""

    deliveries: tuple[ListedDelivery, ...]
    older: Place | None


_LINES = """
    SELECT d.event_seq, d.seq, d.id, d.state, d.due_at, coalesce(d.due_uptime, 0) = 0,
           d.finished_at, d.replays, e.type, e.occurred_at, e.reservation_id, d.endpoint_id, p.url,
           coalesce(last.n, 0), last.outcome, last.http_status
    FROM delivery d
    CROSS JOIN event e ON e.seq = d.event_seq
    JOIN endpoint p ON p.id = d.endpoint_id
    LEFT JOIN attempt last ON last.delivery_seq = d.seq
        AND last.n = (SELECT max(n) FROM attempt WHERE delivery_seq = d.seq)
"""
_PAGE_OF_LINES = f"""{_LINES}
    WHERE (d.event_seq, d.seq) < (:event, :delivery)
        AND e.occurred_at BETWEEN :since AND :until - 1
        AND (:endpoint_id IS NULL OR d.endpoint_id = :endpoint_id)
        AND (:state IS NULL OR d.state = :state)
        AND (:type IS NULL OR e.type = :type)
        AND (:reservation_id IS NULL OR e.reservation_id = :reservation_id)
    ORDER BY d.event_seq DESC, d.seq DESC LIMIT :limit
"""


def page_deliveries(
    reader: Reader, chosen: DeliveryFilter, before: Place | None = None, size: int = PAGE
) -> DeliveryPage:
    """The newest deliveries of `chosen`, older than the place `before`."""
    event, delivery = before or (_FOREVER, 0)
    bound = {
        "event": event,
        "delivery": delivery,
        "since": chosen.since or 0,
        "until": _FOREVER if chosen.until is None else chosen.until,
        "endpoint_id": chosen.endpoint_id,
        "state": chosen.state,
        "type": chosen.event_type,
        "reservation_id": chosen.reservation_id,
        "limit": size + 1,
    }
    rows = list(reader.rows(_PAGE_OF_LINES, bound))
    lines = tuple(ListedDelivery(*row[2:]) for row in rows[:size])
    return DeliveryPage(lines, rows[size - 1][:2] if len(rows) > size else None)


def get_listed_delivery(reader: Reader, delivery_id: str) -> tuple[int, ListedDelivery]:
    """The delivery of that id with its number, or NotFound."""
    row = reader.row(f"{_LINES} WHERE d.id = :id", {"id": delivery_id})
    if row is None:
        raise NotFound
    return int(row[1]), ListedDelivery(*row[2:])


def count_deliveries(
    reader: Reader, endpoint_id: str, states: Sequence[str], since: int, until: int
) -> int:
    """How many deliveries an endpoint has in these states, of events in [since, until)."""
    return int(
        reader.value(
            """SELECT count(*) FROM delivery d CROSS JOIN event e ON e.seq = d.event_seq
               WHERE d.endpoint_id = :endpoint_id
                   AND d.state IN (SELECT value FROM json_each(:states))
                   AND e.occurred_at BETWEEN :since AND :until - 1""",
            {"endpoint_id": endpoint_id, "states": json.dumps(list(states)), "since": since,
             "until": until},
        )
    )  # fmt: skip
