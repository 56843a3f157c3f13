"""Where a guest's name, contacts and free text are stored, and how they are taken out."""

import json
from collections.abc import Collection
from datetime import date

from appliance.model.booking import plain_phone
from appliance.store.connection import Reader, Transaction

# What a line of the history may keep: numbers, names of columns, ids of tables.
_IMPERSONAL = {"changed", "guests", "people", "amount", "from", "to"}
_ERASE = (
    """UPDATE letter
       SET recipient = NULL,
           trouble = CASE state WHEN 'waiting' THEN 'the address was erased' ELSE trouble END,
           state = CASE state WHEN 'waiting' THEN 'failed' ELSE state END
       WHERE reservation_id = :id""",
    "UPDATE scan SET reason = NULL WHERE reservation_id = :id AND reason IS NOT NULL",
    "DELETE FROM claim WHERE reservation_id = :id",
    "UPDATE erasure_request SET done_at = :now WHERE reservation_id = :id AND done_at IS NULL",
)
_PERSONAL = """(customer_name IS NOT NULL OR customer_email IS NOT NULL
    OR customer_phone IS NOT NULL OR notes IS NOT NULL)"""


def find_reservations_of(reader: Reader, email: str | None, phone: str | None) -> list[str]:
    """Reservations that name this email or phone, or whose letters went to that address."""
    found: dict[str, None] = {}
    if email is not None:
        sql = """SELECT id FROM reservation WHERE lower(customer_email) = lower(:email)
                 UNION SELECT reservation_id FROM letter WHERE lower(recipient) = lower(:email)"""
        rows = reader.rows(sql, {"email": email.strip()})
        found |= dict.fromkeys(row[0] for row in rows)
    if phone is not None:
        sql = "SELECT id, customer_phone FROM reservation WHERE customer_phone IS NOT NULL"
        rows = reader.rows(sql)
        found |= dict.fromkeys(id_ for id_, stored in rows if is_same_phone(phone, stored))
    return list(found)


def is_same_phone(one: str, other: str) -> bool:
    """Whether two spellings are one number: `06…` is `+212 6…` and `002126…`."""
    first, second = _digits(one), _digits(other)
    if not first or not second:
        return False
    if first == second:
        return True
    for national, whole in ((first, second), (second, first)):
        rest = national.lstrip("0")
        if national.startswith("0") and len(rest) >= 6 and not whole.startswith("0"):
            return whole.endswith(rest)
    return False


def find_past_guests(reader: Reader, last_evening: date, limit: int) -> list[str]:
    """Reservations up to that evening of whose guests something personal is still stored."""
    sql = f"""SELECT id FROM reservation WHERE date <= :last AND {_PERSONAL}
              ORDER BY date LIMIT :limit"""  # noqa: S608 - made of constants
    return [row[0] for row in reader.rows(sql, {"last": last_evening.isoformat(), "limit": limit})]


def erase_texts_of(tx: Transaction, reservation_id: str) -> None:
    """No letter, scan, browser or line of the history tells any more who the guest was.

    A letter that waits is not sent. The door log keeps its chain and no reason that was typed; the
    history who did what and when, and only numbers and ids beside it.
    """
    values = {"id": reservation_id, "now": tx.now}
    for statement in _ERASE:
        tx.execute(statement, values)
    sql = "SELECT seq, detail FROM history WHERE reservation_id = :id AND detail IS NOT NULL"
    for seq, detail in list(tx.rows(sql, values)):
        kept = {name: value for name, value in json.loads(detail).items() if name in _IMPERSONAL}
        change = {"kept": json.dumps(kept), "seq": seq}
        tx.execute("UPDATE history SET detail = :kept WHERE seq = :seq", change)


def add_erasure(tx: Transaction, reservation_id: str) -> None:
    """Remember that it was erased on demand, for a backup may bring it back."""
    sql = "INSERT INTO erasure (reservation_id, at) VALUES (:id, :now) ON CONFLICT DO NOTHING"
    tx.execute(sql, {"id": reservation_id, "now": tx.now})


def list_erasures(reader: Reader) -> dict[str, int]:
    """What was erased on demand: reservation id and instant."""
    return dict(reader.rows("SELECT reservation_id, at FROM erasure ORDER BY at, reservation_id"))


def keep_existing(reader: Reader, reservation_ids: Collection[str]) -> list[str]:
    """Those of these reservations that are stored here."""
    sql = "SELECT id FROM reservation WHERE id IN (SELECT value FROM json_each(:ids))"
    return [row[0] for row in reader.rows(sql, {"ids": json.dumps(list(reservation_ids))})]


def _digits(text: str) -> str:
    digits = "".join(sign for sign in plain_phone(text) or "" if sign.isdecimal())
    return digits.removeprefix("00")
