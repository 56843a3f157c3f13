"""Rows of `reservation`, their history and payments, and the totals of an evening."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import apsw

from appliance.core.errors import TableTaken
from appliance.database.connection import Reader, Transaction, known
from appliance.outbox import ReservationChanged
from appliance.reservations.model import Issued, Reservation

RESERVATION_COLUMNS = """
    r.seq, r.id, r.status, r.source, r.table_id, t.name, r.date, r.slot, r.starts, r.ends,
    r.guests, r.customer_name, r.customer_email, r.customer_phone, r.notes, r.language,
    r.access_code, r.pass_id, r.generation, r.arrived, r.checked_in_at, r.link_expires_at,
    r.created_at, r.updated_at, r.version, r.cancelled_at, r.expires_at, r.external_ref,
    r.lineage, r.idempotency_key, r.request_hash, r.issued_code, r.email_outcome,
    r.late_at, r.vip, t.number
"""
RESERVATION_FROM = "FROM reservation r JOIN venue_table t ON t.id = r.table_id"
_HOLDING = "status NOT IN ('cancelled', 'declined')"


def find_reservation(reader: Reader, reservation_id: str) -> Reservation | None:
    """The reservation of that id."""
    return _one(reader, "r.id = :id", {"id": reservation_id})


def get_reservation(reader: Reader, reservation_id: str) -> Reservation:
    """The reservation of that id, or NotFound."""
    return known(find_reservation(reader, reservation_id))


def find_reservations(reader: Reader, ids: Collection[str]) -> dict[str, Reservation]:
    """Those of these ids that there are, by id; read at once."""
    sql = f"""SELECT {RESERVATION_COLUMNS} FROM json_each(:ids) wanted
              CROSS JOIN reservation r ON r.id = wanted.value
              JOIN venue_table t ON t.id = r.table_id"""  # noqa: S608
    rows = reader.rows(sql, {"ids": json.dumps(list(ids))})
    return {found.id: found for found in (Reservation(*row) for row in rows)}


def find_by_pass(reader: Reader, pass_id: bytes) -> Reservation | None:
    """The reservation whose guest pass carries `pass_id`, of whatever generation."""
    return _one(reader, "r.pass_id = :pass_id", {"pass_id": pass_id})


def find_by_access_code(reader: Reader, access_code: str) -> Reservation | None:
    """The reservation that `SVC-XXXX` stands for at present."""
    return _one(reader, "r.access_code = :code", {"code": access_code})


def find_issued(reader: Reader, lineage: str, key: str) -> tuple[Issued, bytes | None] | None:
    """What a key of `lineage` was answered to this idempotency key, and the request's hash.

    The hash of an erased guest's request is gone.
    """
    sql = """SELECT id, issued_code, link_expires_at, email_outcome, request_hash
             FROM reservation WHERE lineage = :lineage AND idempotency_key = :key"""
    row = reader.row(sql, {"lineage": lineage, "key": key})
    return None if row is None else (Issued(*row[:4]), row[4])


def list_evening(reader: Reader, date: str) -> list[Reservation]:
    """Every reservation of one evening, in list order, refused and cancelled ones too."""
    sql = f"""SELECT {RESERVATION_COLUMNS} {RESERVATION_FROM} WHERE r.date = :date
              ORDER BY r.slot, r.created_at, r.id"""
    return [Reservation(*row) for row in reader.rows(sql, {"date": date})]


def list_holds(reader: Reader, date: str) -> list[tuple[str, int, int, str]]:
    """Who holds what on a date, earliest created first: (table id, starts, ends, source)."""
    sql = f"""SELECT table_id, starts, ends, source FROM reservation
              WHERE date = :date AND {_HOLDING} ORDER BY created_at, seq"""  # noqa: S608
    return list(reader.rows(sql, {"date": date}))


def is_held(reader: Reader, table_id: str, date: str, starts: int, ends: int, but: int = 0) -> bool:
    """Whether anyone holds the table during [starts, ends) of that evening, `seq` `but` apart."""
    sql = f"""SELECT 1 FROM reservation
              WHERE date = :date AND table_id = :table_id AND {_HOLDING}
                  AND starts < :ends AND :starts < ends AND seq <> :but LIMIT 1"""  # noqa: S608
    span = {"date": date, "table_id": table_id, "starts": starts, "ends": ends, "but": but}
    return reader.row(sql, span) is not None


def insert_reservation(tx: Transaction, values: dict[str, Any]) -> None:
    """Insert a row; TableTaken when the schema finds an overlapping holder."""
    try:
        tx.insert("reservation", values)
    except apsw.ConstraintError as error:
        raise refused_by_schema(error) from error
    tx.notices.append(ReservationChanged(values["id"]))


def refused_by_schema(error: apsw.ConstraintError) -> Exception:
    """What a constraint's complaint means: TableTaken, or the error itself."""
    text = str(error)
    taken = "table_taken" in text or "reservation.date, reservation.table_id" in text
    return TableTaken() if taken else error


def update_reservation(tx: Transaction, reservation_id: str, **values: Any) -> None:
    """Change columns of one row; `updated_at` and `version` follow by themselves."""
    changes = ", ".join(f"{name} = :{name}" for name in values)
    try:
        sql = f"""UPDATE reservation SET {changes}, updated_at = :now_, version = version + 1
                  WHERE id = :id_"""  # noqa: S608
        tx.execute(sql, {**values, "now_": tx.now, "id_": reservation_id})
    except apsw.ConstraintError as error:
        raise refused_by_schema(error) from error
    tx.notices.append(ReservationChanged(reservation_id, moved="date" in values))


def set_email_outcome(tx: Transaction, reservation_id: str, outcome: str) -> None:
    """Note how the first letter went, once; nothing of the reservation itself changes."""
    sql = "UPDATE reservation SET email_outcome = :outcome WHERE id = :id AND email_outcome IS NULL"
    tx.execute(sql, {"outcome": outcome, "id": reservation_id})


def count_body_mismatch(tx: Transaction, reservation_id: str) -> None:
    """Count a replay that came with another body: the portal warns of it."""
    sql = "UPDATE reservation SET body_mismatches = body_mismatches + 1 WHERE id = :id"
    tx.execute(sql, {"id": reservation_id})


def add_history(
    tx: Transaction, reservation_id: str, what: str, actor: str, detail: str | None = None
) -> None:
    """Record who did what; `detail` is JSON without personal data."""
    tx.insert(
        "history",
        {"reservation_id": reservation_id, "at": tx.now, "what": what, "actor": actor,
         "detail": detail},
    )  # fmt: skip


def _one(reader: Reader, condition: str, parameters: dict[str, Any]) -> Reservation | None:
    return reader.one(
        Reservation,
        f"SELECT {RESERVATION_COLUMNS} {RESERVATION_FROM} WHERE {condition}",
        parameters,
    )


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


@dataclass(frozen=True, slots=True)
class Count:
    """So many people, in so many reservations."""

    people: int
    reservations: int


@dataclass(frozen=True, slots=True)
class Totals:
    """`expected` counts those who hold a table, `arrived` the people who are in."""

    expected: Count
    arrived: Count


def count_evening(reader: Reader, date: str) -> Totals:
    """The totals of that evening."""
    sql = """SELECT coalesce(sum(guests) FILTER (WHERE holds), 0), count(*) FILTER (WHERE holds),
                    coalesce(sum(arrived), 0), count(*) FILTER (WHERE arrived > 0)
             FROM (SELECT guests, arrived, status NOT IN ('cancelled', 'declined') AS holds
                   FROM reservation WHERE date = :date)"""
    people, holders, arrived, parties = reader.row(sql, {"date": date}) or (0, 0, 0, 0)
    return Totals(Count(people, holders), Count(arrived, parties))
