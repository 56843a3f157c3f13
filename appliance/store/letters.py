"""Rows of `letter`, the outbox, and of `no_reminders`: hashes of addresses that want none."""

import hashlib
from pathlib import Path

from appliance.model.letter import Letter
from appliance.store.connection import Reader, Transaction, known
from appliance.tokens import first_id_of

_COLUMNS = """
    id, reservation_id, kind, recipient, language, state, attempts, due_at, created_at,
    sent_at, trouble
"""


def find_letter(reader: Reader, letter_id: str) -> Letter | None:
    """The letter of that id."""
    sql = f"SELECT {_COLUMNS} FROM letter WHERE id = :id"  # noqa: S608
    return reader.one(Letter, sql, {"id": letter_id})


def get_letter(reader: Reader, letter_id: str) -> Letter:
    """The letter of that id, or NotFound."""
    return known(find_letter(reader, letter_id))


def letter_state(reader: Reader, letter_id: str) -> str | None:
    """`waiting`, `sent`, `failed` or `kept`; None when there is no such letter."""
    return reader.one(str, "SELECT state FROM letter WHERE id = :id", {"id": letter_id})


def list_letters(reader: Reader, *, limit: int = 100) -> list[Letter]:
    """The newest letters of the outbox first, whatever their state."""
    sql = f"SELECT {_COLUMNS} FROM letter ORDER BY created_at DESC, id DESC LIMIT :limit"  # noqa: S608
    return [Letter(*row) for row in reader.rows(sql, {"limit": limit})]


def list_waiting_letters(reader: Reader) -> list[Letter]:
    """Every letter that still has to be sent, the earliest due first."""
    sql = f"SELECT {_COLUMNS} FROM letter WHERE state = 'waiting' ORDER BY due_at, id"  # noqa: S608
    return [Letter(*row) for row in reader.rows(sql)]


def is_test_outbox(reader: Reader) -> bool:
    """Whether this outbox is its own mailbox: that of the test environment, `test.db`."""
    return Path(reader.connection.filename).stem == "test"


def was_written_to(reader: Reader, reservation_id: str) -> bool:
    """Whether the guest had a letter about this reservation, or one may be on its way."""
    sql = """SELECT EXISTS (SELECT 1 FROM letter
             WHERE reservation_id = :id AND state <> 'failed' AND kind <> 'cancelled')"""
    return bool(reader.value(sql, {"id": reservation_id}))


def count_letters_to(reader: Reader, address: str, since: int) -> int:
    """How many letters were written to that mailbox since then; `me+tag@…` is `me@…`."""
    sql = "SELECT recipient FROM letter WHERE id >= :first AND recipient IS NOT NULL"
    rows = reader.rows(sql, {"first": first_id_of(since)})
    wanted = _mailbox_of(address)
    return sum(_mailbox_of(recipient) == wanted for (recipient,) in rows)


def _mailbox_of(address: str) -> str:
    name, _, domain = address.casefold().rpartition("@")
    return f"{name.partition('+')[0]}@{domain}"


def find_letter_written_now(tx: Transaction, reservation_id: str, kind: str) -> str | None:
    """The id of the letter of that kind that this very transaction has queued."""
    sql = """SELECT id FROM letter
             WHERE reservation_id = :id AND kind = :kind AND created_at = :now"""
    return tx.one(str, sql, {"id": reservation_id, "kind": kind, "now": tx.now})


def count_letters(reader: Reader) -> dict[str, int]:
    """How many letters there are in each state."""
    rows = reader.rows("SELECT state, count(*) FROM letter GROUP BY state")
    return {row[0]: row[1] for row in rows}


def list_troubles(reader: Reader, limit: int) -> list[tuple[int, str]]:
    """When the latest letters that are not sent were written, and what they ran into."""
    sql = """SELECT created_at, trouble FROM letter
             WHERE trouble IS NOT NULL AND state IN ('waiting', 'failed')
             ORDER BY created_at DESC LIMIT :limit"""
    return [(row[0], row[1]) for row in reader.rows(sql, {"limit": limit})]


def add_no_reminders(tx: Transaction, address: str) -> None:
    """Send no reminder to this address any more."""
    sql = "INSERT INTO no_reminders (address_hash, at) VALUES (:hash, :now) ON CONFLICT DO NOTHING"
    tx.execute(sql, {"hash": _hash(address), "now": tx.now})


def wants_no_reminders(reader: Reader, address: str) -> bool:
    """Whether this address has had enough of them."""
    sql = "SELECT 1 FROM no_reminders WHERE address_hash = :hash"
    return reader.row(sql, {"hash": _hash(address)}) is not None


def forget_no_reminders(tx: Transaction, address: str) -> None:
    """Keep nothing of an address that is erased, unless another reservation has it too."""
    sql = """DELETE FROM no_reminders WHERE address_hash = :hash AND NOT EXISTS (
                 SELECT 1 FROM reservation WHERE lower(customer_email) = lower(:address))"""
    tx.execute(sql, {"hash": _hash(address), "address": address})


def _hash(address: str) -> bytes:
    return hashlib.sha256(address.strip().lower().encode()).digest()
