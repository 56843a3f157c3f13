"""Deliveries and attempts: value types, and the rows that the dispatcher reads and writes.

A pending delivery is `new` until its first attempt fails, then a `retry`, or a `replay` if somebody
asked for it. New ones and replays are due now; `due_at` is when a retry is due.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from msgspec import Struct
from msgspec.structs import replace

from appliance.clock import HOUR_MS
from appliance.database.connection import Reader, Transaction

Key = tuple[int, ...]  # a primary key: (delivery seq,), (delivery seq, attempt n) or (event seq,)

STATES = ("pending", "delivered", "dead", "cancelled")


class DueDelivery(Struct, frozen=True):
    """A pending delivery that may be sent now, with its event.

    `attempts` counts the charged attempts since creation or the last replay (see `Outcome`).
    `replays` counts the replays. `reservation_id` is None for a test event.
    """

    seq: int
    id: str
    attempts: int
    event_type: str
    reservation_id: str | None
    occurred_at: int
    replays: int = 0
    event_seq: int = 0

    @property
    def event_id(self) -> str:
        """The UUID that the event's deliveries share."""
        return event_id_of(self.event_seq, self.event_type, self.reservation_id, self.occurred_at)


def event_id_of(seq: int, event_type: str, reservation_id: str | None, occurred_at: int) -> str:
    """Return the UUID of an event, which partners receive as `X-Service-Event-Id`.

    After a restore, a new event may get the same number, but it gets a different UUID.
    """
    return str(uuid5(NAMESPACE_OID, repr((seq, event_type, reservation_id, occurred_at))))


class Outcome(Struct, frozen=True):
    """The result of one attempt: the phase in which it ended, a code, and parts of the response.

    `code` is `delivered`, `http_<status>`, or the name of a failure such as `timeout`. If `charged`
    is False, the box itself caused the failure, so the attempt does not count towards the limit of
    six. `receiver_time` is the response's Date header, in ms since 1970.
    """

    phase: str
    code: str
    http_status: int | None = None
    remote_address: str | None = None
    excerpt: str | None = None
    charged: bool = True
    receiver_time: int | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver responded with a 2xx status in time (interface, section 6.3)."""
        return self.code == "delivered"


class AttemptRecord(Struct, frozen=True):
    """The outcome of an attempt and the new state of its delivery, ready to be written.

    `replays` is the delivery's number of replays when the attempt began. `request` is the failed
    request to store, or None.
    """

    delivery_seq: int
    endpoint_id: str
    started_at: int
    duration_ms: int
    outcome: Outcome
    state: str
    attempts: int
    due_at: int
    replays: int = 0
    body_sha256: bytes | None = None
    request: bytes | None = None

    @property
    def clock_skew_s(self) -> int | None:
        """The receiver's clock minus the box's, in seconds, or None if the response had no date."""
        if self.outcome.receiver_time is None:
            return None
        answered_at = self.started_at + self.duration_ms
        return round((self.outcome.receiver_time - answered_at) / 1000)

    def without_content(self) -> "AttemptRecord":
        """Return a copy without the request, the response excerpt and the body digest."""
        outcome = replace(self.outcome, excerpt=None)
        return replace(self, outcome=outcome, request=None, body_sha256=None)


# CROSS JOIN fixes the join order, so SQLite reads deliveries first, by their index.
_SELECT = """
    SELECT d.seq, d.id, d.attempts, e.type, e.reservation_id, e.occurred_at, d.replays,
           e.seq
    FROM delivery d CROSS JOIN event e ON e.seq = d.event_seq
"""


_DUE = f"{_SELECT} WHERE d.state = 'pending' AND d.endpoint_id = :endpoint_id"
# A retry that is due later than this was scheduled before the clock was set back. The longest wait
# is 12 hours and a minute.
LONGEST_WAIT_MS = 13 * HOUR_MS
_FOREVER = 1 << 62


def iterate_new(reader: Reader, endpoint_id: str, since: int = 0) -> Iterator[DueDelivery]:
    """Iterate over the endpoint's new deliveries that were created after `since`, oldest first.

    If an older new delivery of the same reservation was not, the later ones wait for it.
    """
    rows = reader.rows(
        f"""{_DUE} AND d.kind = 'new' AND d.due_at > :since
                AND (:since = 0 OR NOT EXISTS (
                    SELECT 1 FROM event f CROSS JOIN delivery o INDEXED BY delivery_event
                        ON o.event_seq = f.seq
                    WHERE f.reservation_id = e.reservation_id AND o.endpoint_id = :endpoint_id
                        AND o.state = 'pending' AND o.kind = 'new' AND o.due_at <= :since))
            ORDER BY d.due_at, d.seq""",  # noqa: S608 - constants
        {"endpoint_id": endpoint_id, "since": since},
    )
    return (DueDelivery(*row) for row in rows)


def iterate_retries(reader: Reader, endpoint_id: str, now: int) -> Iterator[DueDelivery]:
    """Iterate over the endpoint's replays, then over its retries that are due, oldest first."""
    late = now + LONGEST_WAIT_MS
    for kind, after, until in (
        ("replay", -1, _FOREVER), ("retry", -1, now), ("retry", late, _FOREVER),
    ):  # fmt: skip
        rows = reader.rows(
            f"""{_DUE} AND d.kind = :kind AND d.due_at > :after AND d.due_at <= :until
                ORDER BY d.due_at, d.seq""",
            {"endpoint_id": endpoint_id, "kind": kind, "after": after, "until": until},
        )
        yield from (DueDelivery(*row) for row in rows)


def find_next_retry(reader: Reader, endpoint_id: str) -> int | None:
    """Return when the endpoint's next retry is due (ms since 1970), 0 for a replay, or None."""
    sql = """SELECT iif(kind = 'replay', 0, due_at) FROM delivery
             WHERE state = 'pending' AND endpoint_id = :endpoint_id AND kind > 'new'
             ORDER BY kind, due_at LIMIT 1"""
    return reader.one(int, sql, {"endpoint_id": endpoint_id})


def list_erased(reader: Reader, seqs: Iterable[int]) -> set[int]:
    """Return those of `seqs` that belong to reservations whose personal data was erased."""
    rows = reader.rows(
        """SELECT d.seq FROM json_each(:seqs) wanted
           CROSS JOIN delivery d ON d.seq = wanted.value
           CROSS JOIN event e ON e.seq = d.event_seq
           CROSS JOIN reservation r ON r.id = e.reservation_id
           WHERE r.customer_name IS NULL""",
        {"seqs": json.dumps(list(seqs))},
    )
    return {seq for (seq,) in rows}


def cancel_pending(tx: Transaction, endpoint_id: str) -> int:
    """Cancel the endpoint's pending deliveries. Return how many were cancelled."""
    return tx.execute(
        """UPDATE delivery SET state = 'cancelled', finished_at = :now
           WHERE state = 'pending' AND endpoint_id = :endpoint_id""",
        {"now": tx.now, "endpoint_id": endpoint_id},
    )


def insert_attempts(tx: Transaction, records: Iterable[AttemptRecord]) -> None:
    """Insert the attempts. Their numbers continue across a delivery's replays."""
    tx.execute_each(
        """INSERT INTO attempt (delivery_seq, n, at, duration_ms, phase, outcome, http_status,
               remote_address, excerpt, charged, body_sha256)
           VALUES (?1, (SELECT coalesce(max(n), 0) + 1 FROM attempt WHERE delivery_seq = ?1),
               ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)""",
        [
            (
                r.delivery_seq,
                r.started_at,
                r.duration_ms,
                o.phase,
                o.code,
                o.http_status,
                o.remote_address,
                o.excerpt,
                o.charged,
                r.body_sha256,
            )
            for r, o in ((record, record.outcome) for record in records)
        ],
    )


def update_deliveries(tx: Transaction, records: Iterable[AttemptRecord]) -> None:
    """Write the state of each delivery after its attempt.

    A delivery that was cancelled or replayed during the attempt changes only if the attempt
    succeeded.
    """
    tx.execute_each(
        """UPDATE delivery
           SET state = ?1, attempts = ?2, due_at = ?3,
               kind = iif(?1 = 'pending', 'retry', kind),
               finished_at = iif(?1 = 'pending', NULL, ?3)
           WHERE seq = ?4
               AND ((state = 'pending' AND replays = ?5)
                   OR (state IN ('pending', 'cancelled') AND ?1 = 'delivered'))""",
        [(r.state, r.attempts, r.due_at, r.delivery_seq, r.replays) for r in records],
    )


def update_health(tx: Transaction, records: Iterable[AttemptRecord]) -> None:
    """Update the endpoints' health. Failures that the box caused do not count."""
    changes: dict[str, dict[str, Any]] = {}
    for record in records:
        outcome = record.outcome
        if not outcome.charged:
            continue
        new = {"id": record.endpoint_id, "now": tx.now, "delivered": 0, "failed": 0, "in_a_row": 0}
        change = changes.setdefault(record.endpoint_id, new | {"skew": None})
        change["delivered" if outcome.delivered else "failed"] = 1
        change["in_a_row"] = 0 if outcome.delivered else change["in_a_row"] + 1
        change["code"] = outcome.code
        change["skew"] = change["skew"] if record.clock_skew_s is None else record.clock_skew_s
    tx.execute_each(
        """UPDATE endpoint
           SET failures_in_a_row = iif(:delivered, 0, failures_in_a_row) + :in_a_row,
               last_success_at = iif(:delivered, :now, last_success_at),
               last_failure_at = iif(:failed, :now, last_failure_at),
               last_outcome = :code,
               clock_skew_s = coalesce(:skew, clock_skew_s)
           WHERE id = :id""",
        list(changes.values()),
    )


def find_failed_request(reader: Reader, delivery_id: str) -> tuple[int, bytes] | None:
    """Return the time (ms since 1970) and the bytes of the last failed request, or None.

    None means that the delivery succeeded or was never sent, that the guest's data was erased, or
    that the request of a cancelled delivery has since been deleted.
    """
    sql = """SELECT r.at, r.request FROM delivery d JOIN failed_request r ON r.delivery_seq = d.seq
             WHERE d.id = :id"""
    row = reader.row(sql, {"id": delivery_id})
    return None if row is None else (int(row[0]), bytes(row[1]))


def keep_failed_requests(tx: Transaction, records: Iterable[AttemptRecord]) -> None:
    """Store each record's failed request. It replaces the request of an earlier attempt."""
    sql = "REPLACE INTO failed_request (delivery_seq, at, request) VALUES (?, ?, ?)"
    tx.execute_each(sql, [(r.delivery_seq, r.started_at, r.request) for r in records])


def drop_requests(tx: Transaction, keys: Sequence[Key]) -> None:
    """Delete the stored failed requests of these deliveries."""
    tx.execute_each("DELETE FROM failed_request WHERE delivery_seq = ?", keys)
