"""Deliveries with their attempts, for whoever wants to read what was sent and how it went."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from appliance.store.connection import Reader


@dataclass(frozen=True, slots=True)
class LoggedAttempt:
    """One attempt. `http_status` is None when no answer came; `outcome` then says why."""

    at: int
    duration_ms: int
    outcome: str
    http_status: int | None


@dataclass(frozen=True, slots=True)
class LoggedDelivery:
    """A delivery, its event and its endpoint. `due_at` counts while it is pending."""

    id: str
    event_seq: int
    event_type: str
    endpoint_id: str
    state: str
    due_at: int
    attempts: tuple[LoggedAttempt, ...]


def list_delivery_log(reader: Reader) -> Iterator[LoggedDelivery]:
    """Every delivery, oldest first, read row by row."""
    rows = reader.rows(
        """SELECT d.id, d.event_seq, e.type, d.endpoint_id, d.state, d.due_at,
                  (SELECT json_group_array(
                          json_array(a.at, a.duration_ms, a.outcome, a.http_status) ORDER BY a.n)
                   FROM attempt a WHERE a.delivery_seq = d.seq)
           FROM delivery d JOIN event e ON e.seq = d.event_seq
           ORDER BY d.seq"""
    )
    for *head, attempts in rows:
        told = tuple(LoggedAttempt(*attempt) for attempt in json.loads(attempts))
        yield LoggedDelivery(*(*head, told))


def count_attempts(reader: Reader, delivery_id: str, endpoint_ids: Collection[str]) -> int | None:
    """How often a delivery was tried so far; None when none of these endpoints is sent it."""
    row = reader.row(
        """SELECT d.endpoint_id,
                  (SELECT count(*) FROM attempt a WHERE a.delivery_seq = d.seq)
           FROM delivery d WHERE d.id = :id""",
        {"id": delivery_id},
    )
    return None if row is None or row[0] not in endpoint_ids else int(row[1])
