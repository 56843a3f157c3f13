"""Queries for reservations and their history, payments, claims and erasure requests."""

import datetime as dt
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from appliance.core.errors import Unavailable
from appliance.core.phone_numbers import country_of, find_numbers
from appliance.database.connection import Reader, Transaction, known
from appliance.outbox import ReservationChanged
from appliance.reservations.holds import hold_tables
from appliance.reservations.model import FREEING_STATUSES, Issued, Reservation
from appliance.venue.model import evening_end, find_zone, get_venue

_CODE_TRIES = 64  # attempts to draw an unused access code


def _of_tables(single: str, group: str) -> str:
    return f"""iif(r.table_ids IS NULL, {single}, (SELECT {group} FROM json_each(r.table_ids) j
        CROSS JOIN venue_table m ON m.id = j.value))"""  # noqa: S608


RESERVATION_COLUMNS = f"""
    r.seq, r.id, r.status, r.source, r.table_id,
    {_of_tables("t.name", "group_concat(m.name, ', ')")}, r.date, r.slot, r.starts, r.ends,
    r.guests, r.customer_name, r.customer_email, r.customer_phone, r.customer_numbers, r.notes,
    r.language,
    r.access_code, r.pass_id, r.generation, r.arrived, r.checked_in_at, r.link_expires_at,
    r.created_at, r.updated_at, r.version, r.cancelled_at, r.expires_at, r.external_ref,
    q.lineage, q.idempotency_key, q.issued_code, q.email_outcome,
    r.left_at, r.no_show, r.walk_in,
    r.late_at, r.vip, {_of_tables("t.number", "group_concat(m.number, ', ')")},
    {_of_tables("NULL", "json_group_array(json_array(m.id, m.name))")}, r.cancelled_by,
    (SELECT names_at_door FROM venue), r.link_generation, r.replaced_codes, r.people_out,
    r.went_out_at
"""  # noqa: S608
WITH_REQUEST = "LEFT JOIN booking_request q ON q.reservation_seq = r.seq"
RESERVATION_FROM = f"""FROM reservation r JOIN venue_table t ON t.id = r.table_id {WITH_REQUEST}"""
_OF_THE_REQUEST = (
    "lineage", "idempotency_key", "request_hash", "issued_code", "email_outcome",
    "body_mismatches",
)  # fmt: skip


def find_reservation(reader: Reader, reservation_id: str) -> Reservation | None:
    """Return the reservation with this id, or None."""
    return _find(reader, "r.id = :id", {"id": reservation_id})


def get_reservation(reader: Reader, reservation_id: str) -> Reservation:
    """Return the reservation with this id. Raises NotFound if there is none."""
    return known(find_reservation(reader, reservation_id))


def find_reservations(reader: Reader, ids: Collection[str]) -> dict[str, Reservation]:
    """Return a map from id to reservation for those of `ids` that exist. Uses a single query."""
    sql = f"""SELECT {RESERVATION_COLUMNS} FROM json_each(:ids) wanted
              CROSS JOIN reservation r ON r.id = wanted.value
              JOIN venue_table t ON t.id = r.table_id {WITH_REQUEST}"""  # noqa: S608
    rows = reader.rows(sql, {"ids": json.dumps(list(ids))})
    return {found.id: found for found in (Reservation(*row) for row in rows)}


def find_by_pass(reader: Reader, pass_id: bytes) -> Reservation | None:
    """Return the reservation whose guest passes have `pass_id`, or None.

    All generations of a reservation's pass have the same `pass_id`.
    """
    return _find(reader, "r.pass_id = :pass_id", {"pass_id": pass_id})


def find_by_access_code(reader: Reader, access_code: str) -> Reservation | None:
    """Return the reservation that currently has this access code (`SVC-XXXX`), or None."""
    return _find(reader, "r.access_code = :code", {"code": access_code})


def new_access_code(tx: Transaction) -> str:
    """Return a random access code that no reservation has. Raises Unavailable after 64 tries."""
    for _ in range(_CODE_TRIES):
        code = tx.tokens.new_access_code()
        if tx.value("SELECT 1 FROM reservation WHERE access_code = :code", {"code": code}) is None:
            return code
    raise Unavailable


def find_issued(reader: Reader, lineage: str, key: str) -> tuple[Issued, bytes | None] | None:
    """Return (result, request hash) of the first request with this lineage and idempotency key.

    If the venue has issued a new code since, the result has the new code and links.
    Return None if there was no such request. The hash is None if the guest's data was erased.
    """
    sql = """SELECT r.id, coalesce(r.access_code, q.issued_code), r.link_expires_at,
                    q.email_outcome, r.link_generation, q.request_hash
             FROM booking_request q JOIN reservation r ON r.seq = q.reservation_seq
             WHERE q.lineage = :lineage AND q.idempotency_key = :key"""
    row = reader.row(sql, {"lineage": lineage, "key": key})
    return None if row is None else (Issued(*row[:5]), row[5])


def list_evening(reader: Reader, date: str) -> list[Reservation]:
    """Return all reservations for an evening, including cancelled and declined ones.

    They are sorted by slot, then by time of creation.
    """
    sql = f"""SELECT {RESERVATION_COLUMNS} {RESERVATION_FROM} WHERE r.date = :date
              ORDER BY r.slot, r.created_at, r.id"""
    return [Reservation(*row) for row in reader.rows(sql, {"date": date})]


def insert_reservation(tx: Transaction, values: dict[str, Any]) -> None:
    """Insert a reservation, the request for it and, unless its status frees it, its hold.

    `values` contains columns of the tables `reservation` and `booking_request`. Raises TableTaken
    if the table is held at that time.
    """
    request = {name: values[name] for name in _OF_THE_REQUEST if name in values}
    row = _with_numbers(tx, {n: value for n, value in values.items() if n not in request})
    seq = tx.insert("reservation", row)
    tx.insert("booking_request", {"reservation_seq": seq, **request})
    if row["status"] not in FREEING_STATUSES:
        tables, hours = json.loads(row.get("table_ids") or "null"), (row["starts"], row["ends"])
        hold_tables(tx, tables or [row["table_id"]], row["date"], hours, row["source"], seq=seq)
    tx.notices.append(ReservationChanged(row["id"]))


def _with_numbers(tx: Transaction, values: dict[str, Any]) -> dict[str, Any]:
    """Return `values` with the phone numbers in `customer_phone`, if that is one of them."""
    if "customer_phone" not in values:
        return values
    country = country_of(get_venue(tx).time_zone)
    numbers = " ".join(find_numbers(values["customer_phone"], country)) or None
    return {**values, "customer_numbers": numbers}


def update_reservation(tx: Transaction, reservation_id: str, **values: Any) -> None:
    """Update columns of one row, set `updated_at` and increment `version`.

    Does not change who holds which table.
    """
    values = _with_numbers(tx, values)
    changes = "".join(f"{name} = :{name}, " for name in values)
    sql = f"""UPDATE reservation SET {changes}updated_at = :now_, version = version + 1
              WHERE id = :id_"""  # noqa: S608
    tx.execute(sql, {**values, "now_": tx.now, "id_": reservation_id})
    tx.notices.append(ReservationChanged(reservation_id, moved="date" in values))


_OF_RESERVATION = "reservation_seq = (SELECT seq FROM reservation WHERE id = :id)"


def set_email_outcome(tx: Transaction, reservation_id: str, outcome: str) -> None:
    """Store the email outcome that the partner gets, unless it is already stored."""
    sql = f"""UPDATE booking_request SET email_outcome = :outcome
              WHERE {_OF_RESERVATION} AND email_outcome IS NULL"""  # noqa: S608
    tx.execute(sql, {"outcome": outcome, "id": reservation_id})


def count_other_body(tx: Transaction, reservation_id: str) -> None:
    """Count a replay whose body was another."""
    sql = f"""UPDATE booking_request SET body_mismatches = body_mismatches + 1
              WHERE {_OF_RESERVATION}"""  # noqa: S608
    tx.execute(sql, {"id": reservation_id})


def add_history(tx: Transaction, reservation_id: str, what: str, actor: str, **detail: Any) -> None:
    """Append a history entry.

    `detail` must not contain personal data, except in a reason that staff typed.
    """
    tx.insert(
        "history",
        {"reservation_id": reservation_id, "at": tx.now, "what": what, "actor": actor,
         "detail": json.dumps(detail) if detail else None},
    )  # fmt: skip


def _find(reader: Reader, condition: str, parameters: dict[str, Any]) -> Reservation | None:
    sql = f"SELECT {RESERVATION_COLUMNS} {RESERVATION_FROM} WHERE {condition}"
    return reader.one(Reservation, sql, parameters)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A history entry. `at` is in ms since 1970.

    `actor` is `guest` or has one of the forms that `record_audit` lists. `name` is the current name
    of the actor.
    """

    at: int
    what: str
    actor: str
    name: str | None
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment. `amount` is in whole currency units. Totals do not include voided payments."""

    id: str
    at: int
    amount: int
    method: str
    staff_name: str | None
    voided_at: int | None


def list_history(reader: Reader, reservation_id: str) -> list[HistoryEntry]:
    """Return the reservation's history, latest first.

    `name` is None for staff, because only the live database has staff accounts. The caller can look
    the name up with `staff_names`.
    """
    sql = """SELECT h.at, h.what, h.actor, coalesce(k.name, t.name), h.detail
             FROM history h
             LEFT JOIN api_key k ON h.actor = 'key:' || k.id
             LEFT JOIN terminal t ON h.actor = 'terminal:' || t.id
             WHERE h.reservation_id = :id ORDER BY h.seq DESC"""
    rows = reader.rows(sql, {"id": reservation_id})
    return [HistoryEntry(*(*columns, json.loads(detail or "{}"))) for *columns, detail in rows]


def list_payments(reader: Reader, reservation_id: str) -> list[Payment]:
    """Return the reservation's payments, oldest first.

    `staff_name` contains the staff id. The caller can look the name up with `staff_names`.
    """
    sql = """SELECT id, at, amount, method, staff_id, voided_at FROM payment
             WHERE reservation_id = :id ORDER BY at, id"""
    return [Payment(*row) for row in reader.rows(sql, {"id": reservation_id})]


def sum_payments(reader: Reader, reservation_id: str) -> int:
    """Return the total of the reservation's payments that are not voided, in currency units."""
    sql = """SELECT coalesce(sum(amount), 0) FROM payment
             WHERE reservation_id = :id AND voided_at IS NULL"""
    return int(reader.value(sql, {"id": reservation_id}))


def count_other_bodies(reader: Reader, reservation_id: str) -> int:
    """Return how many times the idempotency key was reused with a different body."""
    sql = f"SELECT body_mismatches FROM booking_request WHERE {_OF_RESERVATION}"  # noqa: S608
    return int(reader.value(sql, {"id": reservation_id}) or 0)


def staff_names(reader: Reader) -> dict[str, str]:
    """Return a map from staff id to name. `reader` must read the live database."""
    return dict(reader.rows("SELECT id, name FROM staff"))


@dataclass(frozen=True, slots=True)
class Count:
    """A number of people and the number of their reservations."""

    people: int
    reservations: int


@dataclass(frozen=True, slots=True)
class Totals:
    """An evening's totals.

    `expected` counts the reservations that hold a table, and all their guests. `arrived` counts the
    guests who have arrived, and their reservations. `inside` counts the people who came in minus
    those who went out, of whom `without_table` are walk-ins without a table. This is negative if
    more people went out without a code than such walk-ins came in.
    """

    expected: Count
    arrived: Count
    inside: Count
    without_table: int


def count_requests(reader: Reader, first: str) -> int:
    """Count the unanswered requests for evenings on or after `first` (YYYY-MM-DD)."""
    sql = "SELECT count(*) FROM reservation WHERE status = 'requested' AND date >= :first"
    return int(reader.value(sql, {"first": first}))


def count_evening(reader: Reader, date: str) -> Totals:
    """Return the totals for an evening (YYYY-MM-DD)."""
    sql = """SELECT coalesce(sum(guests) FILTER (WHERE holds), 0), count(*) FILTER (WHERE holds),
                    coalesce(sum(arrived), 0), count(*) FILTER (WHERE arrived > 0),
                    coalesce(sum(inside), 0), count(*) FILTER (WHERE inside > 0)
             FROM (SELECT guests, arrived, arrived - people_out AS inside,
                          status NOT IN ('cancelled', 'declined') AS holds
                   FROM reservation WHERE date = :date)"""
    row = reader.row(sql, {"date": date}) or (0, 0, 0, 0, 0, 0)
    without_table = _count_without_table(reader, date)
    inside = Count(max(0, row[4] + without_table), row[5])
    return Totals(Count(*row[:2]), Count(*row[2:4]), inside, without_table)


def _count_without_table(reader: Reader, date: str) -> int:
    venue, zone, day = get_venue(reader), find_zone(reader), dt.date.fromisoformat(date)
    sql = """SELECT coalesce(sum(admitted + moved), 0)
             FROM scan_log INDEXED BY scan_log_without_table
             WHERE reservation_id IS NULL AND admitted + moved != 0 AND at >= :begins
               AND coalesce(happened_at, at) >= :begins AND coalesce(happened_at, at) < :ends"""
    begins = evening_end(day - dt.timedelta(days=1), zone, venue.evening_ends_at)
    ends = evening_end(day, zone, venue.evening_ends_at)
    return int(reader.value(sql, {"begins": begins, "ends": ends}))


def is_claimed(reader: Reader, device_hash: bytes, reservation_id: str) -> bool:
    """Whether a guest has saved the reservation in the browser with this hash."""
    sql = "SELECT 1 FROM claim WHERE device_hash = :device AND reservation_id = :reservation_id"
    return reader.row(sql, {"device": device_hash, "reservation_id": reservation_id}) is not None


def list_claimed(reader: Reader, device_hash: bytes) -> list[str]:
    """Return the ids of at most 50 reservations saved in a browser, latest evening first."""
    sql = """SELECT r.id FROM claim c JOIN reservation r ON r.id = c.reservation_id
             WHERE c.device_hash = :device ORDER BY r.date DESC, r.starts DESC, r.id LIMIT 50"""
    return [row[0] for row in reader.rows(sql, {"device": device_hash})]


def delete_claims(tx: Transaction, device_hash: bytes) -> None:
    """Empty a browser's list of saved reservations. The reservations themselves remain."""
    tx.execute("DELETE FROM claim WHERE device_hash = :device", {"device": device_hash})


def has_asked_for_erasure(reader: Reader, reservation_id: str) -> bool:
    """Whether the guest has ever requested that their data be erased."""
    sql = "SELECT 1 FROM erasure_request WHERE reservation_id = :id"
    return reader.row(sql, {"id": reservation_id}) is not None


def find_erasure_request(reader: Reader, reservation_id: str) -> int | None:
    """Return when the reservation's open erasure request was made (ms since 1970), or None."""
    return dict(list_erasure_requests(reader)).get(reservation_id)


def list_erasure_requests(reader: Reader) -> list[tuple[str, int]]:
    """Return (reservation id, ms since 1970) of each open erasure request, oldest first."""
    sql = "SELECT reservation_id, at FROM erasure_request WHERE done_at IS NULL ORDER BY at"
    return [(id_, at) for id_, at in reader.rows(sql)]
