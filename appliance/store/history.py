"""What happened to a reservation, and what was paid for it, with the names of who did it."""

import json
from dataclasses import dataclass
from typing import Any

from appliance.store.connection import Reader


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One line: `actor` is key, staff, terminal, guest or box; `name` is theirs as it is now."""

    at: int
    what: str
    actor: str
    name: str | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Payment:
    """Money that staff received; `amount` in whole currency units. A voided one counts no more."""

    id: str
    at: int
    amount: int
    method: str
    staff_name: str | None
    voided_at: int | None


def list_history(reader: Reader, reservation_id: str) -> list[HistoryEntry]:
    """Every line about that reservation, the latest first. Staff are named by the caller.

    Staff belong to the house: their names are in the live database alone (see `staff_names`).
    """
    sql = """SELECT h.at, h.what, h.actor, coalesce(k.name, t.name), h.detail
             FROM history h
             LEFT JOIN api_key k ON h.actor = 'key:' || k.id
             LEFT JOIN terminal t ON h.actor = 'terminal:' || t.id
             WHERE h.reservation_id = :id ORDER BY h.seq DESC"""
    rows = reader.rows(sql, {"id": reservation_id})
    return [
        HistoryEntry(at, what, actor, name, json.loads(detail) if detail else {})
        for at, what, actor, name, detail in rows
    ]


def list_payments(reader: Reader, reservation_id: str) -> list[Payment]:
    """What was paid for that reservation, in order; the staff's id stands for the name."""
    sql = """SELECT id, at, amount, method, staff_id, voided_at FROM payment
             WHERE reservation_id = :id ORDER BY at, id"""
    return [Payment(*row) for row in reader.rows(sql, {"id": reservation_id})]


def sum_payments(reader: Reader, reservation_id: str) -> int:
    """What was received for that reservation, in whole currency units."""
    sql = """SELECT coalesce(sum(amount), 0) FROM payment
             WHERE reservation_id = :id AND voided_at IS NULL"""
    return int(reader.value(sql, {"id": reservation_id}))


def count_other_bodies(reader: Reader, reservation_id: str) -> int:
    """How often its partner sent its idempotency key again with another body."""
    sql = "SELECT body_mismatches FROM reservation WHERE id = :id"
    return int(reader.value(sql, {"id": reservation_id}) or 0)


def staff_names(reader: Reader) -> dict[str, str]:
    """Everybody's name by id, from the house's database."""
    return dict(reader.rows("SELECT id, name FROM staff"))
