"""Rows of `no_reminders`: addresses, as hashes, whose owners want no reminders."""

import hashlib

from appliance.store.connection import Reader, Transaction


def add_no_reminders(tx: Transaction, address: str) -> None:
    """Send no reminder to this address any more."""
    tx.execute(
        "INSERT INTO no_reminders (address_hash, at) VALUES (:hash, :now) ON CONFLICT DO NOTHING",
        {"hash": _hash(address), "now": tx.now},
    )


def wants_no_reminders(reader: Reader, address: str) -> bool:
    """Whether this address has had enough of them."""
    sql = "SELECT 1 FROM no_reminders WHERE address_hash = :hash"
    return reader.row(sql, {"hash": _hash(address)}) is not None


def forget_no_reminders(tx: Transaction, address: str) -> None:
    """Keep nothing of an address that is erased, unless another reservation has it too."""
    tx.execute(
        """DELETE FROM no_reminders WHERE address_hash = :hash AND NOT EXISTS (
               SELECT 1 FROM reservation WHERE lower(customer_email) = lower(:address))""",
        {"hash": _hash(address), "address": address},
    )


def _hash(address: str) -> bytes:
    return hashlib.sha256(address.strip().lower().encode()).digest()
