"""The delivery log: pages, attempts, retention, and replay of deliveries.

Each page starts after the last row of the previous page, so new deliveries do not move its rows.
Retention finds rows using readers, then deletes them in batches using the writer. All instants are
in ms since 1970. A replayed delivery counts as a retry that is due now, not as a new delivery.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from appliance.core.errors import EndpointIsInactive
from appliance.database.connection import Reader, Transaction, known
from appliance.database.database import Database
from appliance.webhooks.deliveries import DueDelivery, Key, drop_requests, find_failed_request
from appliance.webhooks.endpoints import EndpointsChanged, get_endpoint

PAGE = 50
_FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """A filter for deliveries. A field that is None matches everything."""

    endpoint_id: str | None = None
    state: str | None = None
    reservation_id: str | None = None


@dataclass(frozen=True, slots=True)
class ListedDelivery:
    """One row of the log. `last_outcome` and `last_status` are from the latest stored attempt."""

    id: str
    state: str
    due_at: int
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
    """One page, newest event first.

    Pass `older` to `page_deliveries` as `before` to get the next page. It is None on the last page.
    """

    deliveries: tuple[ListedDelivery, ...]
    older: str | None


_LINES = """
    SELECT d.event_seq, d.seq, d.id, d.state, d.due_at,
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
        AND (:endpoint_id IS NULL OR d.endpoint_id = :endpoint_id)
        AND (:state IS NULL OR d.state = :state)
        AND (:reservation_id IS NULL OR e.reservation_id = :reservation_id)
    ORDER BY d.event_seq DESC, d.seq DESC LIMIT :limit
"""


def page_deliveries(
    reader: Reader, chosen: DeliveryFilter, before: str | None = None, size: int = PAGE
) -> DeliveryPage:
    """Return up to `size` deliveries that match `chosen`, newest first.

    If `before` (a delivery id) is given, return only older deliveries. Raises NotFound if there is
    no delivery with this id.
    """
    event, delivery = _FOREVER, 0
    if before is not None:
        sql = "SELECT event_seq, seq FROM delivery WHERE id = :id"
        event, delivery = known(reader.row(sql, {"id": before}))
    bound = {"event": event, "delivery": delivery, "limit": size + 1} | asdict(chosen)
    rows = list(reader.rows(_PAGE_OF_LINES, bound))
    lines = tuple(ListedDelivery(*row[2:]) for row in rows[:size])
    return DeliveryPage(lines, lines[-1].id if len(rows) > size else None)


def get_listed_delivery(reader: Reader, delivery_id: str) -> tuple[int, ListedDelivery]:
    """Return (`seq`, delivery). Raises NotFound if the id is unknown."""
    row = known(reader.row(f"{_LINES} WHERE d.id = :id", {"id": delivery_id}))
    return int(row[1]), ListedDelivery(*row[2:])


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """The queue of one endpoint.

    `next_at` is the next due time, 0 if a delivery is due now, or None if the queue is empty.
    """

    pending: int
    dead: int
    next_at: int | None


def read_queue(reader: Reader, endpoint_id: str) -> QueueSummary:
    """Count the endpoint's pending and dead deliveries and find the next due time."""
    sql = """SELECT (SELECT count(*) FROM delivery
                     WHERE state = 'pending' AND endpoint_id = :id),
                    (SELECT count(*) FROM delivery
                     WHERE endpoint_id = :id AND state = 'dead'),
                    (SELECT min(iif(kind = 'retry', due_at, 0)) FROM delivery
                     WHERE state = 'pending' AND endpoint_id = :id)"""
    return known(reader.one(QueueSummary, sql, {"id": endpoint_id}))


BATCH = 500  # maximum number of rows changed in one transaction
FOUND = 10 * BATCH
# Maximum number of deliveries deleted in one transaction, together with their attempts. A delivery
# has up to six attempts, or more after a replay.
DELIVERIES = BATCH // 8
_ROW_BYTES = 120  # size of an attempt row with its index entries, without the excerpt


def find_cut_of_attempts(reader: Reader, rows: int, size: int) -> int:
    """Return the earliest instant such that all attempts since then fit within the limits.

    The limits are `rows` rows and `size` bytes. Returns 0 if all stored attempts fit.
    """
    sql = "SELECT at FROM attempt ORDER BY at DESC LIMIT 1 OFFSET :rows"
    by_number = reader.value(sql, {"rows": rows})
    sql = """SELECT at FROM (
                 SELECT at, sum(:row + coalesce(octet_length(excerpt), 0))
                     OVER (ORDER BY at DESC, delivery_seq, n) AS together
                 FROM attempt)
             WHERE together > :size ORDER BY at DESC LIMIT 1"""
    by_size = reader.value(sql, {"row": _ROW_BYTES, "size": size})
    return max((at + 1 for at in (by_number, by_size) if at is not None), default=0)


def find_attempts(reader: Reader, before: int) -> list[Key]:
    """Return the keys of up to 5000 attempts that were made before `before`, oldest first."""
    sql = "SELECT delivery_seq, n FROM attempt WHERE at < :before ORDER BY at LIMIT :limit"
    return list(reader.rows(sql, {"before": before, "limit": FOUND}))


def find_answers(reader: Reader, before: int) -> list[Key]:
    """Return the keys of up to 5000 attempts whose stored response excerpt can be deleted.

    Their deliveries were delivered or cancelled before `before`.
    """
    sql = """SELECT a.delivery_seq, a.n
             FROM delivery d CROSS JOIN attempt a ON a.delivery_seq = d.seq
             WHERE d.finished_at < :before AND d.state IN ('delivered', 'cancelled')
                 AND a.excerpt IS NOT NULL
             LIMIT :limit"""
    return list(reader.rows(sql, {"before": before, "limit": FOUND}))


def find_requests(reader: Reader, before: int) -> list[Key]:
    """Return the keys of up to 5000 stored failed requests that can be deleted.

    Their deliveries were delivered or cancelled before `before`.
    """
    sql = """SELECT r.delivery_seq
             FROM failed_request r CROSS JOIN delivery d ON d.seq = r.delivery_seq
             WHERE d.finished_at < :before AND d.state IN ('delivered', 'cancelled')
             LIMIT :limit"""
    return list(reader.rows(sql, {"before": before, "limit": FOUND}))


def find_deliveries(reader: Reader, before: int) -> list[Key]:
    """Return the keys of up to 5000 deliveries that ended before `before`."""
    sql = """SELECT seq FROM delivery WHERE finished_at < :before
             ORDER BY finished_at LIMIT :limit"""
    return list(reader.rows(sql, {"before": before, "limit": FOUND}))


def find_events(reader: Reader, before: int) -> list[Key]:
    """Return the keys of up to 5000 events that occurred before `before` and have no deliveries.

    The newest event is kept, so that SQLite does not use its `seq`, which is in cursors, again.
    """
    sql = """SELECT e.seq FROM event e
             WHERE e.occurred_at < :before AND e.seq < (SELECT max(seq) FROM event)
                 AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.event_seq = e.seq)
             LIMIT :limit"""
    return list(reader.rows(sql, {"before": before, "limit": FOUND}))


def drop_attempts(tx: Transaction, keys: Sequence[Key]) -> None:
    """Delete these attempts."""
    tx.execute_each("DELETE FROM attempt WHERE delivery_seq = ? AND n = ?", keys)


def drop_answers(tx: Transaction, keys: Sequence[Key]) -> None:
    """Delete the response excerpts of these attempts. Their outcomes are kept."""
    tx.execute_each("UPDATE attempt SET excerpt = NULL WHERE delivery_seq = ? AND n = ?", keys)


def drop_deliveries(tx: Transaction, keys: Sequence[Key]) -> None:
    """Delete these deliveries and their attempts.

    Keeps deliveries that were replayed after they were found, and so are pending again.
    """
    sql = "SELECT endpoint_id FROM delivery WHERE seq = :seq AND state <> 'pending'"
    ended = {key: id_ for key in keys if (id_ := tx.value(sql, {"seq": key[0]}))}
    drop_requests(tx, [*ended])
    tx.execute_each("DELETE FROM attempt WHERE delivery_seq = ?", [*ended])
    tx.execute_each("DELETE FROM delivery WHERE seq = ?", [*ended])
    # SQLite may reuse their `seq` for new deliveries, which the queues would treat as begun.
    tx.notices += map(EndpointsChanged, set(ended.values()))


def drop_events(tx: Transaction, keys: Sequence[Key]) -> None:
    """Delete these events."""
    tx.execute_each("DELETE FROM event WHERE seq = ?", keys)


def erase_deliveries_of(tx: Transaction, reservation_id: str) -> None:
    """Erase the stored request and response content of a reservation's deliveries.

    Times and outcomes are kept, because they describe the endpoint and not the guest. The body's
    digest is erased too, because it could be used to confirm a guessed name.
    """
    sql = """SELECT d.seq FROM event e JOIN delivery d ON d.event_seq = e.seq
             WHERE e.reservation_id = :id"""
    deliveries = list(tx.rows(sql, {"id": reservation_id}))
    sql = "UPDATE attempt SET excerpt = NULL, body_sha256 = NULL WHERE delivery_seq = ?"
    tx.execute_each(sql, deliveries)
    drop_requests(tx, deliveries)


# Number of rows examined in one transaction. This takes a few milliseconds.
REPLAY_PAGE = 500
# Skips deliveries that are due now and not yet attempted, i.e. new and already replayed deliveries.
_REPLAY = """
    UPDATE delivery
    SET state = 'pending', attempts = 0, due_at = :now, kind = 'replay',
        finished_at = NULL, replays = replays + 1
    WHERE NOT (state = 'pending' AND kind <> 'retry')
"""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects an endpoint's deliveries by state, for events that occurred in [since, until)."""

    endpoint_id: str
    states: tuple[str, ...] = ("dead",)
    since: int = 0
    until: int = _FOREVER


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a replay.

    The replay covers deliveries with a `seq` up to `last`. Those up to `after` have been processed.
    """

    after: int
    last: int
    replayed: int

    @property
    def done(self) -> bool:
        """Whether all deliveries that existed when the replay began have been processed."""
        return self.after >= self.last


def replay_delivery(tx: Transaction, delivery_id: str) -> bool:
    """Queue the delivery to be sent again. Returns False if it is already due now.

    If an attempt is in progress, the delivery is sent again only if that attempt fails. Raises
    NotFound if the delivery is unknown, and EndpointIsInactive if its endpoint is deactivated.
    """
    sql = "SELECT endpoint_id FROM delivery WHERE id = :id"
    endpoint_id = known(tx.value(sql, {"id": delivery_id}))
    return _replay(tx, endpoint_id, "id = :id", {"id": delivery_id}) > 0


def replay_deliveries(
    tx: Transaction, selection: Selection, progress: Progress | None = None
) -> Progress:
    """Replay the next page of `selection`. Call again with the returned progress until `done`.

    Follows the rules of `replay_delivery`, and skips deliveries created after the first call.
    Raises NotFound if the endpoint is unknown, and EndpointIsInactive if it is deactivated.
    """
    start = progress or Progress(0, tx.value("SELECT coalesce(max(seq), 0) FROM delivery"), 0)
    sql = """SELECT max(seq) FROM (SELECT seq FROM delivery WHERE seq > :after AND seq <= :last
                                   ORDER BY seq LIMIT :size)"""
    end = tx.value(sql, {"after": start.after, "last": start.last, "size": REPLAY_PAGE})
    replayed = _replay(
        tx,
        selection.endpoint_id,
        """seq > :after AND seq <= :end AND +endpoint_id = :endpoint_id
           AND state IN (SELECT value FROM json_each(:states))
           AND (SELECT occurred_at FROM event WHERE event.seq = event_seq)
               BETWEEN :since AND :until - 1""",
        asdict(selection)
        | {"after": start.after, "end": end, "states": json.dumps(selection.states)},
    )
    return Progress(start.last if end is None else end, start.last, start.replayed + replayed)


async def replay_selected(database: Database, selection: Selection) -> int:
    """Replay all deliveries in `selection`, in batches. Return how many were replayed.

    Raises NotFound if the endpoint is unknown, and EndpointIsInactive if it is deactivated.
    """
    progress: Progress | None = None
    while progress is None or not progress.done:
        progress = await database.write(replay_deliveries, selection, progress)
    return progress.replayed


def _replay(tx: Transaction, endpoint_id: str, where: str, bound: dict[str, object]) -> int:
    """Make the matching deliveries due now. Return how many were changed."""
    if not get_endpoint(tx, endpoint_id).active:
        raise EndpointIsInactive
    replayed = tx.execute(f"{_REPLAY} AND {where}", {"now": tx.now, **bound})
    if replayed:
        tx.notices.append(EndpointsChanged(endpoint_id))
    return replayed


_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt for display in the portal. `charged` is 0 if the box caused the failure."""

    n: int
    at: int
    duration_ms: int
    phase: str
    outcome: str
    http_status: int | None
    remote_address: str | None
    excerpt: str | None
    charged: int  # 1 or 0
    body_sha256: bytes | None


@dataclass(frozen=True, slots=True)
class DeliveryStory:
    """A delivery with its latest attempts, newest first.

    `failed_request` is the (time in ms since 1970, bytes) of the last failed request, if stored.
    """

    delivery: ListedDelivery
    due: DueDelivery
    attempts: tuple[Attempt, ...]
    failed_request: tuple[int, bytes] | None


def list_delivery_log(reader: Reader) -> Iterator[tuple[int, ListedDelivery, list[Attempt]]]:
    """Iterate over (event seq, delivery, attempts), oldest delivery and latest attempt first."""
    for event_seq, seq, *columns in reader.rows(f"{_LINES} ORDER BY d.seq"):
        yield event_seq, ListedDelivery(*columns), _list_attempts(reader, seq)


def get_delivery_story(reader: Reader, delivery_id: str) -> DeliveryStory:
    """Return the delivery with its latest 100 attempts. Raises NotFound if the id is unknown."""
    seq, found = get_listed_delivery(reader, delivery_id)
    due = DueDelivery(
        seq, found.id, 0, found.event_type, found.reservation_id, found.occurred_at, found.replays
    )
    attempts = tuple(_list_attempts(reader, seq))
    return DeliveryStory(found, due, attempts, find_failed_request(reader, delivery_id))


def _list_attempts(reader: Reader, seq: int) -> list[Attempt]:
    """Return the latest 100 attempts of the delivery, newest first."""
    rows = reader.rows(
        """SELECT n, at, duration_ms, phase, outcome, http_status, remote_address, excerpt,
                  charged, body_sha256
           FROM attempt WHERE delivery_seq = :seq ORDER BY n DESC LIMIT :limit""",
        {"seq": seq, "limit": _SHOWN},
    )
    return [Attempt(*row) for row in rows]
