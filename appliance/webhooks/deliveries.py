"""Deliveries and attempts: values, and the rows that the dispatcher reads and writes.

A delivery that was never tried has no `due_uptime`: those go out in the order of writing. Others
are due by the machine's uptime, which no clock step moves; a replayed one is due at uptime 0,
now.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from appliance.database.connection import Reader, Transaction

STATES = ("pending", "delivered", "dead", "cancelled")


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """A pending delivery that may be sent now, and the event it carries.

    `attempts` counts the charged ones since its creation or its last replay; `replays` counts
    those. `reservation_id` is None for `webhook.test`.
    """

    seq: int
    id: str
    attempts: int
    event_type: str
    reservation_id: str | None
    occurred_at: int
    replays: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended: where, with which typed result, and what was seen of the answer.

    `code` is `delivered`, `http_<status>`, or the name of a failure such as `timeout`. An
    attempt that is not `charged` failed by our own fault and moves no ladder. `receiver_time`
    is what its clock said when it answered, in ms since 1970.
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
        """Whether the receiver took it: 2xx in time (interface, section 6.3)."""
        return self.code == "delivered"


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """An attempt's outcome and what becomes of its delivery, ready to be written.

    `outcome` None means that nothing was sent: the delivery is cancelled. `replays` is the
    number that the delivery had when the attempt began. `request` is what was sent, when that
    is to be kept; `retried` says that a request of an earlier attempt may be kept.
    """

    delivery_seq: int
    endpoint_id: str
    started_at: int
    duration_ms: int
    outcome: Outcome | None
    state: str
    attempts: int
    due_at: int
    due_uptime: int | None
    replays: int = 0
    body_sha256: bytes | None = None
    request: bytes | None = None
    retried: bool = False

    @property
    def clock_skew_s(self) -> int | None:
        """The receiver's clock minus ours in seconds, as its answer said."""
        if self.outcome is None or self.outcome.receiver_time is None:
            return None
        answered_at = self.started_at + self.duration_ms
        return round((self.outcome.receiver_time - answered_at) / 1000)

    def unquoted(self) -> "AttemptRecord":
        """The same without a word of what was sent and answered, and without its digest."""
        outcome = None if self.outcome is None else replace(self.outcome, excerpt=None)
        return replace(self, outcome=outcome, request=None, body_sha256=None)


# CROSS JOIN keeps the order: the deliveries by their index first, then the event of each.
_SELECT = """
    SELECT d.seq, d.id, d.attempts, e.type, e.reservation_id, e.occurred_at, d.replays
    FROM delivery d CROSS JOIN event e ON e.seq = d.event_seq
"""


_DUE = f"{_SELECT} WHERE d.state = 'pending' AND d.endpoint_id = :endpoint_id AND"


def iterate_untried(reader: Reader, endpoint_id: str, after: int) -> Iterator[DueDelivery]:
    """Deliveries of an endpoint that were never tried, oldest first, with a `seq` beyond `after`.

    None about a reservation of which one up to `after` was not tried yet.
    """
    rows = reader.rows(
        f"""{_DUE} d.due_uptime IS NULL AND d.seq > :after
                AND (:after = 0 OR NOT EXISTS (
                    SELECT 1 FROM event f CROSS JOIN delivery o INDEXED BY delivery_event
                        ON o.event_seq = f.seq
                    WHERE f.reservation_id = e.reservation_id AND o.endpoint_id = :endpoint_id
                        AND o.state = 'pending' AND o.due_uptime IS NULL AND o.seq <= :after))
            ORDER BY d.seq""",  # noqa: S608 - constants
        {"endpoint_id": endpoint_id, "after": after},
    )
    return (DueDelivery(*row) for row in rows)


def iterate_retries(reader: Reader, endpoint_id: str, uptime: int) -> Iterator[DueDelivery]:
    """Deliveries of an endpoint whose next attempt is due at `uptime`, longest due first."""
    rows = reader.rows(
        f"{_DUE} d.due_uptime <= :uptime ORDER BY d.due_uptime, d.seq",
        {"endpoint_id": endpoint_id, "uptime": uptime},
    )
    return (DueDelivery(*row) for row in rows)


def newest_delivery(reader: Reader) -> int:
    """The number of the delivery that was written last; 0 when there is none."""
    return int(reader.value("SELECT coalesce(max(seq), 0) FROM delivery"))


def find_next_retry(reader: Reader, endpoint_id: str, uptime: int) -> int | None:
    """When, after `uptime`, the endpoint's next retry is due."""
    found = reader.value(
        """SELECT due_uptime FROM delivery
           WHERE state = 'pending' AND endpoint_id = :endpoint_id AND due_uptime > :uptime
           ORDER BY due_uptime LIMIT 1""",
        {"endpoint_id": endpoint_id, "uptime": uptime},
    )
    return None if found is None else int(found)


def list_forgotten(reader: Reader, seqs: Iterable[int]) -> set[int]:
    """Those of these deliveries whose guest was erased."""
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
    """Cancel what an endpoint has not received yet; how many deliveries that were."""
    return tx.execute(
        """UPDATE delivery SET state = 'cancelled', finished_at = :now
           WHERE state = 'pending' AND endpoint_id = :endpoint_id""",
        {"now": tx.now, "endpoint_id": endpoint_id},
    )


def insert_attempts(tx: Transaction, records: Iterable[AttemptRecord]) -> None:
    """Log what was sent. Attempts are numbered over all replays of a delivery."""
    rows: list[dict[str, Any]] = [
        {
            "seq": record.delivery_seq,
            "at": record.started_at,
            "duration_ms": record.duration_ms,
            "phase": record.outcome.phase,
            "outcome": record.outcome.code,
            "http_status": record.outcome.http_status,
            "remote_address": record.outcome.remote_address,
            "excerpt": record.outcome.excerpt,
            "charged": int(record.outcome.charged),
            "body_sha256": record.body_sha256,
        }
        for record in records
        if record.outcome is not None
    ]
    tx.execute_each(
        """INSERT INTO attempt (delivery_seq, n, at, duration_ms, phase, outcome, http_status,
               remote_address, excerpt, charged, body_sha256)
           VALUES (:seq, (SELECT coalesce(max(n), 0) + 1 FROM attempt WHERE delivery_seq = :seq),
               :at, :duration_ms, :phase, :outcome, :http_status, :remote_address, :excerpt,
               :charged, :body_sha256)""",
        rows,
    )


def move_deliveries(tx: Transaction, boot: str, records: Iterable[AttemptRecord]) -> None:
    """Put each delivery into the state that its attempt led to.

    A delivery that was cancelled meanwhile stays so, and one that was replayed meanwhile keeps
    its fresh ladder, unless it turned out to have arrived.
    """
    rows: list[dict[str, Any]] = [
        {
            "seq": record.delivery_seq,
            "state": record.state,
            "attempts": record.attempts,
            "due_at": record.due_at,
            "due_boot": boot,
            "due_uptime": record.due_uptime,
            "finished_at": None if record.state == "pending" else record.due_at,
            "replays": record.replays,
        }
        for record in records
    ]
    tx.execute_each(
        """UPDATE delivery
           SET state = :state, attempts = :attempts, due_at = :due_at, due_boot = :due_boot,
               due_uptime = :due_uptime, finished_at = :finished_at
           WHERE seq = :seq
               AND ((state = 'pending' AND replays = :replays)
                   OR (state IN ('pending', 'cancelled') AND :state = 'delivered'))""",
        rows,
    )


def find_failed_request(reader: Reader, delivery_id: str) -> tuple[int, bytes] | None:
    """When, in ms since 1970, and the head and body that a delivery was last sent with.

    None when it has arrived, was never tried, or its guest was forgotten.
    """
    sql = """SELECT r.at, r.request FROM delivery d JOIN failed_request r ON r.delivery_seq = d.seq
             WHERE d.id = :id"""
    row = reader.row(sql, {"id": delivery_id})
    return None if row is None else (int(row[0]), bytes(row[1]))


def keep_failed_requests(tx: Transaction, records: Iterable[AttemptRecord]) -> None:
    """Keep the request of each record in the place of the one before."""
    rows = [(r.delivery_seq, r.started_at, r.request) for r in records]
    if rows:
        sql = "REPLACE INTO failed_request (delivery_seq, at, request) VALUES (?, ?, ?)"
        tx.execute_each(sql, rows)


def drop_failed_requests(tx: Transaction, delivery_seqs: Sequence[int]) -> None:
    """Forget the requests of these deliveries."""
    if delivery_seqs:
        sql = "DELETE FROM failed_request WHERE delivery_seq = ?"
        tx.execute_each(sql, [(seq,) for seq in delivery_seqs])
