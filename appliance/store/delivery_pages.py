"""The log of deliveries a page at a time, newest event first, however long it is.

A page is found by where the one before it ended, never by counting. Each endpoint and each state
is a run of its own in an index, in the order of events: the newest of all runs are one page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from appliance.errors import NotFound
from appliance.model.delivery import STATES
from appliance.store.connection import Reader, Row

PAGE = 50
_BEGINNING = (2**62, 0)

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


def page_deliveries(
    reader: Reader, chosen: DeliveryFilter, before: Place | None = None, size: int = PAGE
) -> DeliveryPage:
    """The newest deliveries of `chosen`, older than the place `before`."""
    found = list(islice(_places(reader, chosen, before or _BEGINNING, size + 1), size + 1))
    lines = tuple(_line(reader, seq) for _, seq in found[:size])
    return DeliveryPage(lines, found[size - 1] if len(found) > size else None)


def get_listed_delivery(reader: Reader, delivery_id: str) -> tuple[int, ListedDelivery]:
    """The delivery of that id with its number, or NotFound."""
    seq = reader.value("SELECT seq FROM delivery WHERE id = :id", {"id": delivery_id})
    if seq is None:
        raise NotFound
    return int(seq), _line(reader, int(seq))


def count_deliveries(
    reader: Reader, endpoint_id: str, states: Sequence[str], since: int, until: int
) -> int:
    """How many deliveries an endpoint has in these states, of events in [since, until)."""
    period = _span(reader, since, until)
    if period is None:
        return 0
    bound = {"endpoint_id": endpoint_id, "first": period[0], "last": period[1],
             "since": since, "until": until}  # fmt: skip
    return sum(int(reader.value(_COUNTS[state], bound)) for state in states)


def _places(reader: Reader, chosen: DeliveryFilter, before: Place, limit: int) -> Iterator[Place]:
    """Where the newest deliveries of `chosen` are, newest first."""
    span: Place | None = (0, _BEGINNING[0])
    since, until = chosen.since or 0, chosen.until or _BEGINNING[0]
    if chosen.since is not None or chosen.until is not None:
        span = _span(reader, since, until)
    if span is None:
        return iter(())
    bound = {"event": before[0], "delivery": before[1], "first": span[0], "last": span[1],
             "since": since, "until": until, "limit": limit}  # fmt: skip
    if chosen.reservation_id is not None:
        return _picked(reader, _OF_RESERVATION, chosen, bound)
    if chosen.event_type is not None:
        return _picked(reader, _OF_TYPE, chosen, bound)
    endpoints = [chosen.endpoint_id] if chosen.endpoint_id else _endpoint_ids(reader)
    states = [chosen.state] if chosen.state else STATES
    runs = [
        _rows(reader, _RUNS[state], {**bound, "endpoint_id": endpoint_id})
        for endpoint_id in endpoints
        for state in states
    ]
    return merge(*runs, reverse=True)


def _run(state: str) -> str:
    """The condition that finds a run in its index; the state is one of ours, never a parameter."""
    said = "" if state == "pending" else " AND d.state <> 'pending'"
    return f"d.endpoint_id = :endpoint_id AND d.state = '{STATES[STATES.index(state)]}'{said}"


_WITHIN = """
    AND d.event_seq <= min(:event, :last) AND d.event_seq >= :first
    AND (d.event_seq, d.seq) < (:event, :delivery)
    AND e.occurred_at BETWEEN :since AND :until - 1
"""
_RUNS = {
    state: f"""SELECT d.event_seq, d.seq FROM delivery d CROSS JOIN event e ON e.seq = d.event_seq
               WHERE {_run(state)} {_WITHIN}
               ORDER BY d.event_seq DESC, d.seq DESC LIMIT :limit"""  # noqa: S608 - constants
    for state in STATES
}
_COUNTS = {
    state: f"""SELECT count(*) FROM delivery d CROSS JOIN event e ON e.seq = d.event_seq
               WHERE {_run(state)} AND d.event_seq BETWEEN :first AND :last
                   AND e.occurred_at BETWEEN :since AND :until - 1"""  # noqa: S608 - constants
    for state in STATES
}
_PICKED = f"""
    CROSS JOIN delivery d INDEXED BY delivery_event ON d.event_seq = e.seq
    WHERE e.seq <= min(:event, :last) AND e.seq >= :first
        AND (:endpoint_id IS NULL OR d.endpoint_id = :endpoint_id)
        AND (:state IS NULL OR d.state = :state) {_WITHIN}
"""
_ORDER = "ORDER BY e.seq DESC, d.seq DESC LIMIT :limit"
_OF_TYPE = f"SELECT d.event_seq, d.seq FROM event e {_PICKED} AND e.type = :type {_ORDER}"  # noqa: S608
_OF_RESERVATION = f"""
    SELECT d.event_seq, d.seq FROM event e INDEXED BY event_reservation {_PICKED}
        AND e.reservation_id = :reservation_id AND (:type IS NULL OR e.type = :type) {_ORDER}
"""  # noqa: S608 - constants


def _picked(
    reader: Reader, sql: str, chosen: DeliveryFilter, bound: dict[str, int]
) -> Iterator[Place]:
    more = {
        "type": chosen.event_type,
        "endpoint_id": chosen.endpoint_id,
        "state": chosen.state,
        "reservation_id": chosen.reservation_id,
    }
    return _rows(reader, sql, {**bound, **more})


def _rows(reader: Reader, sql: str, bound: dict[str, object]) -> Iterator[Place]:
    # Read at once: runs that are merged would otherwise share one prepared statement.
    return iter(list(reader.rows(sql, bound)))


def _span(reader: Reader, since: int, until: int) -> Place | None:
    """The numbers of the first and the last event of a period; None when it had none."""
    row = reader.row(
        "SELECT min(seq), max(seq) FROM event WHERE occurred_at BETWEEN :since AND :until - 1",
        {"since": since, "until": until},
    )
    return None if row is None or row[0] is None else (row[0], row[1])


def _endpoint_ids(reader: Reader) -> list[str]:
    return [row[0] for row in reader.rows("SELECT id FROM endpoint")]


def _line(reader: Reader, seq: int) -> ListedDelivery:
    row: Row | None = reader.row(
        """SELECT d.id, d.state, d.due_at, coalesce(d.due_uptime, 0) = 0, d.finished_at, d.replays,
                  e.type, e.occurred_at, e.reservation_id, d.endpoint_id, p.url,
                  (SELECT coalesce(max(a.n), 0) FROM attempt a WHERE a.delivery_seq = d.seq),
                  last.outcome, last.http_status
           FROM delivery d
           JOIN event e ON e.seq = d.event_seq
           JOIN endpoint p ON p.id = d.endpoint_id
           LEFT JOIN attempt last ON last.delivery_seq = d.seq
               AND last.n = (SELECT max(n) FROM attempt WHERE delivery_seq = d.seq)
           WHERE d.seq = :seq""",
        {"seq": seq},
    )
    if row is None:
        raise NotFound
    return ListedDelivery(*row)
