"""Rows of `failed_request`: the request of each delivery that failed last, as it was sent."""

from collections.abc import Iterable, Sequence

from appliance.model.delivery import AttemptRecord
from appliance.store.connection import Reader, Transaction


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
