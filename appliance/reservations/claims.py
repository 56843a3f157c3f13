"""Claims: guests save a reservation in their browser and correct their own data."""

import json
from dataclasses import dataclass

from appliance.core.errors import RateLimited, WrongState, field_invalid
from appliance.database.connection import Reader, Transaction
from appliance.reservations.emails import LANGUAGES
from appliance.reservations.model import Reservation
from appliance.reservations.request import check_customer, plain_phone
from appliance.reservations.rows import add_history, get_reservation, update_reservation


def add_claim(tx: Transaction, device_hash: bytes, reservation_id: str) -> bool:
    """Bind a reservation to a browser. Returns False if it was bound before."""
    sql = """INSERT INTO claim (device_hash, reservation_id, at)
             VALUES (:device, :id, :at) ON CONFLICT DO NOTHING"""
    return tx.execute(sql, {"device": device_hash, "id": reservation_id, "at": tx.now}) > 0


def is_claimed(reader: Reader, device_hash: bytes, reservation_id: str) -> bool:
    """Whether the reservation is bound to that browser."""
    sql = "SELECT 1 FROM claim WHERE device_hash = :device AND reservation_id = :reservation_id"
    return reader.row(sql, {"device": device_hash, "reservation_id": reservation_id}) is not None


def list_claimed(reader: Reader, device_hash: bytes, *, limit: int = 50) -> list[str]:
    """Return the ids of reservations bound to a browser, latest evenings first."""
    sql = """SELECT r.id FROM claim c JOIN reservation r ON r.id = c.reservation_id
             WHERE c.device_hash = :device ORDER BY r.date DESC, r.starts DESC, r.id LIMIT :limit"""
    return [row[0] for row in reader.rows(sql, {"device": device_hash, "limit": limit})]


def delete_claims(tx: Transaction, device_hash: bytes) -> None:
    """Delete all claims of a browser."""
    tx.execute("DELETE FROM claim WHERE device_hash = :device", {"device": device_hash})


def has_asked_for_erasure(reader: Reader, reservation_id: str) -> bool:
    """Whether the guest has requested erasure of their data."""
    sql = "SELECT 1 FROM erasure_request WHERE reservation_id = :id"
    return reader.row(sql, {"id": reservation_id}) is not None


def find_erasure_request(reader: Reader, reservation_id: str) -> int | None:
    """Return the time of an open erasure request, in ms since 1970, or None."""
    sql = "SELECT at FROM erasure_request WHERE reservation_id = :id AND done_at IS NULL"
    return reader.one(int, sql, {"id": reservation_id})


def list_erasure_requests(reader: Reader) -> list[tuple[str, int]]:
    """Return open erasure requests, earliest first: (reservation id, ms since 1970)."""
    sql = "SELECT reservation_id, at FROM erasure_request WHERE done_at IS NULL ORDER BY at"
    return [(id_, at) for id_, at in reader.rows(sql)]


_OPEN = ("requested", "pending", "partial", "confirmed")
# Limit for each reservation: anyone with the link can add history entries, which are kept.
_MOST_CHANGES = 100


@dataclass(frozen=True, slots=True)
class Correction:
    """A guest's correction of their data; None leaves a field unchanged."""

    name: str | None = None
    email: str | None = None
    phone: str | None = None
    language: str | None = None


def claim(
    tx: Transaction, reservation_id: str, device_hash: bytes | None,
    correction: Correction | None = None,
) -> Reservation:  # fmt: skip
    """Correct the reservation, and bind it to a browser unless `device_hash` is None.

    Idempotent for each browser. A cancelled or past reservation is neither bound nor
    corrected. Errors as `correct`; RateLimited also for too many browsers.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status not in _OPEN:
        return reservation
    if correction is not None:
        reservation = correct(tx, reservation_id, correction)
    if device_hash is not None and add_claim(tx, device_hash, reservation_id):
        _demand_patience(tx, reservation_id)
        add_history(tx, reservation_id, "claimed", "guest")
    return reservation


def correct(tx: Transaction, reservation_id: str, correction: Correction) -> Reservation:
    """Update the guest's name, contacts and language. The guest's pass stays valid.

    CustomerNameRequired, InvalidEmail and ValidationError as at creation; WrongState once the
    reservation is cancelled or over; RateLimited after a hundred changes.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.status not in _OPEN:
        raise WrongState(state=reservation.status)
    check_customer(correction.name, correction.email, correction.phone, "")
    if correction.language is not None and correction.language not in LANGUAGES:
        raise field_invalid("language", "language")
    wanted = {
        "customer_name": correction.name,
        "customer_email": correction.email,
        "customer_phone": plain_phone(correction.phone),
        "language": correction.language,
    }
    changed = {
        column: value
        for column, value in wanted.items()
        if value is not None and getattr(reservation, column) != value
    }
    if not changed:
        return reservation
    _demand_patience(tx, reservation_id)
    update_reservation(tx, reservation_id, **changed)
    detail = json.dumps({"changed": sorted(changed)})
    add_history(tx, reservation_id, "amended", "guest", detail)
    return get_reservation(tx, reservation_id)


def _demand_patience(tx: Transaction, reservation_id: str) -> None:
    sql = "SELECT count(*) FROM history WHERE reservation_id = :id AND actor = 'guest'"
    if tx.value(sql, {"id": reservation_id}) >= _MOST_CHANGES:
        raise RateLimited
