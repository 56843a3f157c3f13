"""Reservations on which the clock has something to do: past evenings, unanswered requests."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from appliance.model.notices import ReservationChanged
from appliance.store.connection import Reader, Transaction


@dataclass(frozen=True, slots=True)
class Expected:
    """A guest who may be reminded. `starts` is in minutes after midnight; 0 without a slot."""

    id: str
    date: date
    slot: str | None
    starts: int
    created_at: int
    email: str


def list_unreminded(reader: Reader, first: date) -> Iterator[Expected]:
    """Guests expected from that evening on who have an address and no reminder yet, in order."""
    rows = reader.rows(
        """SELECT id, date, slot, starts, created_at, customer_email FROM reservation r
           WHERE status = 'confirmed' AND date >= :first AND customer_email IS NOT NULL
               AND (source <> 'partner' OR email_outcome IS NOT 'skipped')
               AND checked_in_at IS NULL
               AND NOT EXISTS (SELECT 1 FROM letter l
                               WHERE l.reservation_id = r.id AND l.kind = 'reminder')
           ORDER BY date, starts""",
        {"first": first.isoformat()},
    )
    for id_, day, *rest in rows:
        yield Expected(id_, date.fromisoformat(day), *rest)


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
    completed = [row[0] for row in rows]
    tx.notices += [ReservationChanged(reservation_id) for reservation_id in completed]
    return completed


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
