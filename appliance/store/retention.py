"""Forgetting what the webhook log no longer needs.

What is to go is found by readers, which may take their time; it is forgotten by the writer,
a batch of keys at a time. Instants are ms since 1970.
"""

from collections.abc import Sequence

from appliance.store.connection import Reader, Transaction

BATCH = 500  # rows that one transaction changes at most
FOUND = 10 * BATCH
DELIVERIES = BATCH // 8  # each has six attempts, and a few more with every replay
_ROW_BYTES = 120  # an attempt without its excerpt, its index included

Key = tuple[int, ...]


def find_cut_of_attempts(reader: Reader, rows: int, size: int) -> int:
    """From which instant on attempts are within `rows` and `size` bytes; 0 when all are."""
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
    """Attempts made before that instant, oldest first."""
    sql = "SELECT delivery_seq, n FROM attempt WHERE at < :before ORDER BY at LIMIT :limit"
    return list(reader.rows(sql, {"before": before, "limit": FOUND}))


def find_answers(reader: Reader, before: int) -> list[Key]:
    """Attempts at what was delivered, or cancelled, before that instant, with an answer's words."""
    sql = """SELECT a.delivery_seq, a.n
             FROM delivery d CROSS JOIN attempt a ON a.delivery_seq = d.seq
             WHERE d.finished_at < :before AND d.state IN ('delivered', 'cancelled')
                 AND a.excerpt IS NOT NULL
             LIMIT :limit"""
    return list(reader.rows(sql, {"before": before, "limit": FOUND}))


def find_requests(reader: Reader, before: int) -> list[Key]:
    """Deliveries that were cancelled before that instant, with a request that failed."""
    sql = """SELECT r.delivery_seq
             FROM failed_request r CROSS JOIN delivery d ON d.seq = r.delivery_seq
             WHERE d.finished_at < :before AND d.state IN ('delivered', 'cancelled')
             LIMIT :limit"""
    return list(reader.rows(sql, {"before": before, "limit": FOUND}))


def find_deliveries(reader: Reader, dead_before: int, ended_before: int) -> list[Key]:
    """Deliveries that died before one instant, or ended otherwise before the other."""
    sql = """SELECT seq FROM delivery
             WHERE finished_at < max(:dead, :ended)
                 AND finished_at < CASE state WHEN 'dead' THEN :dead ELSE :ended END
             ORDER BY finished_at LIMIT :limit"""
    return list(reader.rows(sql, {"dead": dead_before, "ended": ended_before, "limit": FOUND}))


def find_events(reader: Reader, before: int) -> list[Key]:
    """Events from before that instant that nobody is sent any more."""
    sql = """SELECT e.seq FROM event e
             WHERE e.occurred_at < :before
                 AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.event_seq = e.seq)
             LIMIT :limit"""
    return list(reader.rows(sql, {"before": before, "limit": FOUND}))


def drop_attempts(tx: Transaction, keys: Sequence[Key]) -> None:
    """Forget these attempts."""
    tx.execute_each("DELETE FROM attempt WHERE delivery_seq = ? AND n = ?", keys)


def drop_answers(tx: Transaction, keys: Sequence[Key]) -> None:
    """Of these attempts keep what came of them, and nothing that was said."""
    tx.execute_each("UPDATE attempt SET excerpt = NULL WHERE delivery_seq = ? AND n = ?", keys)


def drop_requests(tx: Transaction, keys: Sequence[Key]) -> None:
    """Forget what was sent last of these deliveries."""
    tx.execute_each("DELETE FROM failed_request WHERE delivery_seq = ?", keys)


def drop_deliveries(tx: Transaction, keys: Sequence[Key]) -> None:
    """Forget these deliveries with all their attempts, unless one is being replayed."""
    ended = [
        key for key in keys
        if tx.value("SELECT state FROM delivery WHERE seq = :seq", {"seq": key[0]}) != "pending"
    ]  # fmt: skip
    drop_requests(tx, ended)
    tx.execute_each("DELETE FROM attempt WHERE delivery_seq = ?", ended)
    tx.execute_each("DELETE FROM delivery WHERE seq = ?", ended)


def drop_events(tx: Transaction, keys: Sequence[Key]) -> None:
    """Forget these events."""
    tx.execute_each("DELETE FROM event WHERE seq = ?", keys)


def erase_deliveries_of(tx: Transaction, reservation_id: str) -> None:
    """Erase what the log quotes of a reservation: what was sent, and what was answered.

    When it was sent and what came of it stays: that is about the endpoint. A digest goes too,
    for a guessed name could be tried against it.
    """
    sql = """SELECT d.seq FROM event e JOIN delivery d ON d.event_seq = e.seq
             WHERE e.reservation_id = :id"""
    deliveries = list(tx.rows(sql, {"id": reservation_id}))
    sql = "UPDATE attempt SET excerpt = NULL, body_sha256 = NULL WHERE delivery_seq = ?"
    tx.execute_each(sql, deliveries)
    drop_requests(tx, deliveries)
