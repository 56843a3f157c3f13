"""Reservations on which the clock has something to do: past evenings, unanswered requests."""

from datetime import date

from appliance.store.connection import Reader, Transaction


def find_first_open_evening(reader: Reader) -> date | None:
    """The earliest evening that still has a confirmed reservation."""
    found = reader.value("SELECT min(date) FROM reservation WHERE status = 'confirmed'")
    return None if found is None else date.fromisoformat(found)


def find_first_evening_with_codes(reader: Reader) -> date | None:
    """The earliest evening whose reservations still have access codes."""
    found = reader.value("SELECT min(date) FROM reservation WHERE access_code IS NOT NULL")
    return None if found is None else date.fromisoformat(found)


def find_first_expiry(reader: Reader) -> int | None:
    """When the next unanswered request expires, in ms since 1970."""
    found = reader.value("SELECT min(expires_at) FROM reservation WHERE status = 'requested'")
    return None if found is None else int(found)


def list_expired_requests(reader: Reader, limit: int) -> list[str]:
    """Ids of requests whose time has run out, the longest overdue first."""
    rows = reader.rows(
        """SELECT id FROM reservation
           WHERE status = 'requested' AND expires_at <= :now
           ORDER BY expires_at LIMIT :limit""",
        {"now": reader.now, "limit": limit},
    )
    return [row[0] for row in rows]


def complete_up_to(tx: Transaction, last_evening: date, limit: int) -> list[str]:
    """Confirmed reservations up to that evening become completed; their ids, at most `limit`."""
    rows = tx.rows(
        """UPDATE reservation
           SET status = 'completed', updated_at = :now, version = version + 1
           WHERE seq IN (
               SELECT seq FROM reservation
               WHERE status = 'confirmed' AND date <= :last
               ORDER BY date LIMIT :limit)
           RETURNING id""",
        {"now": tx.now, "last": last_evening.isoformat(), "limit": limit},
    )
    return [row[0] for row in rows]


def free_codes_up_to(tx: Transaction, last_evening: date, limit: int) -> int:
    """Reservations up to that evening give their access codes back; how many did."""
    return tx.execute(
        """UPDATE reservation SET access_code = NULL
           WHERE seq IN (
               SELECT seq FROM reservation
               WHERE access_code IS NOT NULL AND date <= :last
               ORDER BY date LIMIT :limit)""",
        {"last": last_evening.isoformat(), "limit": limit},
    )
