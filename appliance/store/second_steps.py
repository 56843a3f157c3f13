"""Rows of `second_step`, `spent_step`, `recovery_code` and `asked_code`."""

from appliance.model.second_step import ASKED_MILLISECONDS, AskedCode, SecondStep
from appliance.store.connection import Reader, Transaction

_KEPT_STEPS = 2880  # of a day


def find_second_step(reader: Reader, staff_id: str) -> SecondStep | None:
    """That person's, in force or only offered."""
    return reader.one(
        SecondStep,
        "SELECT secret, offered_at, since FROM second_step WHERE staff_id = :id",
        {"id": staff_id},
    )


def has_second_step(reader: Reader, staff_id: str) -> bool:
    """Whether that person's is in force."""
    found = find_second_step(reader, staff_id)
    return found is not None and found.since is not None


def list_second_steps(reader: Reader) -> set[str]:
    """Whose are in force."""
    return {id_ for (id_,) in reader.rows("SELECT staff_id FROM second_step WHERE since NOT NULL")}


def delete_second_step(tx: Transaction, staff_id: str) -> None:
    """Forget the secret and all that belongs to it."""
    for table in ("second_step", "spent_step", "recovery_code", "asked_code"):
        tx.execute(f"DELETE FROM {table} WHERE staff_id = :id", {"id": staff_id})  # noqa: S608


def spend_step(tx: Transaction, staff_id: str, step: int) -> bool:
    """Whether that step's code is taken now for the first time."""
    spent = {"id": staff_id, "step": step}
    sql = "INSERT INTO spent_step (staff_id, step) VALUES (:id, :step) ON CONFLICT DO NOTHING"
    is_first = tx.execute(sql, spent) > 0
    sql = "DELETE FROM spent_step WHERE staff_id = :id AND step < :step"
    tx.execute(sql, {**spent, "step": step - _KEPT_STEPS})
    return is_first


def spend_recovery_code(tx: Transaction, staff_id: str, code: bytes) -> bool:
    """Whether there was such a code; it is none any more."""
    sql = "DELETE FROM recovery_code WHERE staff_id = :id AND hash = :hash"
    return tx.execute(sql, {"id": staff_id, "hash": code}) > 0


def count_recovery_codes(reader: Reader, staff_id: str) -> int:
    """How many are left."""
    sql = "SELECT count(*) FROM recovery_code WHERE staff_id = :id"
    return int(reader.value(sql, {"id": staff_id}))


def insert_asked_code(tx: Transaction, asked_hash: bytes, staff_id: str, device: bytes) -> None:
    """Ask for a code whose try was counted with the password; old askings are forgotten."""
    tx.execute("DELETE FROM asked_code WHERE expires_at <= :now", {"now": tx.now})
    tx.insert(
        "asked_code",
        {"hash": asked_hash, "staff_id": staff_id, "device": device,
         "expires_at": tx.now + ASKED_MILLISECONDS, "is_counted": 1},
    )  # fmt: skip


def find_asked_code(reader: Reader, asked_hash: bytes) -> AskedCode | None:
    """Who is asked on the form with that secret; None when it is over, used or unknown."""
    sql = """SELECT staff_id, device, is_counted FROM asked_code
             WHERE hash = :hash AND expires_at > :now AND expires_at <= :latest"""
    latest = reader.now + ASKED_MILLISECONDS
    return reader.one(AskedCode, sql, {"hash": asked_hash, "now": reader.now, "latest": latest})
