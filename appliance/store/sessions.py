"""Rows of `session`, `known_device` and `sign_in_failure`: who is signed in, and who guesses."""

from collections.abc import Iterable
from typing import Any

from appliance.model.notices import SessionEnded
from appliance.model.session import IDLE_MILLISECONDS, LONGEST_MILLISECONDS, Session
from appliance.store.connection import Reader, Row, Transaction
from appliance.store.staff import STAFF_COLUMNS, staff_member

_COLUMNS = f"x.id, x.device, x.created_at, x.seen_at, {STAFF_COLUMNS}"
_IS_OVER = "seen_at <= :seen OR created_at <= :created"
_FROM = "session x JOIN staff s ON s.id = x.staff_id AND s.disabled_at IS NULL"


def find_session(reader: Reader, session_hash: bytes) -> Session | None:
    """The session with that cookie, over or not; None when its person left."""
    sql = f"SELECT {_COLUMNS} FROM {_FROM} WHERE x.hash = :hash"  # noqa: S608
    return reader.one(_session, sql, {"hash": session_hash})


def list_sessions(reader: Reader, staff_id: str) -> list[Session]:
    """That person's sessions, the latest used first."""
    sql = f"SELECT {_COLUMNS} FROM {_FROM} WHERE x.staff_id = :id ORDER BY x.seen_at DESC"  # noqa: S608
    return [_session(*row) for row in reader.rows(sql, {"id": staff_id})]


def touch_session(tx: Transaction, session_id: str) -> None:
    """Note that it was used now."""
    tx.update("session", session_id, seen_at=tx.now)


def delete_session(tx: Transaction, staff_id: str, session_id: str) -> bool:
    """End one session of that person; whether it was there."""
    sql = "DELETE FROM session WHERE id = :id AND staff_id = :staff_id"
    was_there = tx.execute(sql, {"id": session_id, "staff_id": staff_id}) > 0
    if was_there:
        tx.notices.append(SessionEnded(session_id))
    return was_there


def delete_sessions(tx: Transaction, staff_id: str) -> int:
    """End every session of that person, and every sign-in under way; how many sessions."""
    tx.execute("DELETE FROM asked_code WHERE staff_id = :id", {"id": staff_id})
    sql = "DELETE FROM session WHERE staff_id = :id RETURNING id"
    return _tell_ended(tx, tx.rows(sql, {"id": staff_id}))


def delete_other_sessions(tx: Transaction, staff_id: str, session_id: str) -> int:
    """End every session of that person but this one; how many there were."""
    sql = "DELETE FROM session WHERE staff_id = :staff_id AND id <> :id RETURNING id"
    return _tell_ended(tx, tx.rows(sql, {"staff_id": staff_id, "id": session_id}))


def count_sessions(reader: Reader) -> dict[str, int]:
    """In how many browsers each person is signed in now."""
    sql = f"SELECT staff_id, count(*) FROM session WHERE NOT ({_IS_OVER}) GROUP BY staff_id"  # noqa: S608
    return dict(reader.rows(sql, _over(reader, 0)))


def has_old_sign_ins(reader: Reader, guessed_before: int) -> bool:
    """Whether `delete_old_sign_ins` would find something."""
    sql = f"""SELECT EXISTS (SELECT 1 FROM session WHERE {_IS_OVER})
                  OR EXISTS (SELECT 1 FROM sign_in_failure WHERE at < :guessed)"""  # noqa: S608
    return bool(reader.value(sql, _over(reader, guessed_before)))


def delete_old_sign_ins(tx: Transaction, guessed_before: int) -> int:
    """Forget sessions that are over, and what was guessed before that (ms); how many rows."""
    over = _over(tx, guessed_before)
    sessions = tx.execute(f"DELETE FROM session WHERE {_IS_OVER}", over)  # noqa: S608
    return sessions + tx.execute("DELETE FROM sign_in_failure WHERE at < :guessed", over)


def is_known_device(reader: Reader, device_hash: bytes, staff_id: str) -> bool:
    """Whether this person signed in with that browser before."""
    sql = "SELECT 1 FROM known_device WHERE hash = :hash AND staff_id = :staff_id"
    return reader.row(sql, {"hash": device_hash, "staff_id": staff_id}) is not None


def is_device_of_house(reader: Reader, device_hash: bytes) -> bool:
    """Whether anybody signed in with that browser before."""
    sql = "SELECT EXISTS (SELECT 1 FROM known_device WHERE hash = :hash)"
    return bool(reader.value(sql, {"hash": device_hash}))


def count_failures(reader: Reader, account: bytes, device: bytes) -> tuple[int, int]:
    """Wrong passwords in a row for that account and device, and when the latest was."""
    sql = "SELECT wrong, at FROM sign_in_failure WHERE account = :account AND device = :device"
    wrong, at = reader.row(sql, {"account": account, "device": device}) or (0, 0)
    return wrong, at


def add_failure(tx: Transaction, account: bytes, device: bytes) -> None:
    """One more wrong password."""
    sql = """INSERT INTO sign_in_failure (account, device, wrong, at)
             VALUES (:account, :device, 1, :now)
             ON CONFLICT DO UPDATE SET wrong = wrong + 1, at = :now"""
    tx.execute(sql, {"account": account, "device": device, "now": tx.now})


def clear_failures(tx: Transaction, account: bytes, device: bytes | None = None) -> None:
    """Forget wrong passwords: of one device, or of all."""
    sql = """DELETE FROM sign_in_failure
             WHERE account = :account AND (:device IS NULL OR device = :device)"""
    tx.execute(sql, {"account": account, "device": device})


def _tell_ended(tx: Transaction, rows: Iterable[Row]) -> int:
    """Their boards are told at once; how many they are."""
    ended = [SessionEnded(session_id) for (session_id,) in rows]
    tx.notices.extend(ended)
    return len(ended)


def _over(reader: Reader, guessed_before: int) -> dict[str, int]:
    now = reader.now
    return {
        "seen": now - IDLE_MILLISECONDS,
        "created": now - LONGEST_MILLISECONDS,
        "guessed": guessed_before,
    }


def _session(id_: str, device: str, created_at: int, seen_at: int, *person: Any) -> Session:
    return Session(id_, staff_member(*person), device, created_at, seen_at)
