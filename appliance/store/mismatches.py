"""Idempotency keys that came back with another body: a partner's mistake worth telling."""

from dataclasses import dataclass

from appliance.store.connection import Reader

SHOWN = 200


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A reservation whose idempotency key was sent again, `times` times, with another body."""

    reservation_id: str
    lineage: str
    times: int
    idempotency_key: str | None
    date: str
    slot: str | None
    table: str
    created_at: int


def list_mismatches(reader: Reader, limit: int = SHOWN) -> list[Mismatch]:
    """The latest reservations of which that is true."""
    sql = """SELECT r.id, r.lineage, r.body_mismatches, r.idempotency_key, r.date, r.slot,
                    t.number, r.created_at
             FROM reservation r JOIN venue_table t ON t.id = r.table_id
             WHERE r.body_mismatches > 0 AND r.lineage IS NOT NULL
             ORDER BY r.created_at DESC LIMIT :limit"""
    return [Mismatch(*row) for row in reader.rows(sql, {"limit": limit})]
