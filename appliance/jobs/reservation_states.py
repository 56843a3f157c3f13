"""Timed changes to reservations: completion, expiry of requests and codes, and reminders."""

from collections.abc import Iterator
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from appliance.clock import DAY_MS, HOUR_MS
from appliance.database.connection import Reader, Transaction
from appliance.environment import Environment
from appliance.outbox import ReservationChanged
from appliance.reservations.change import accept, cancel, decline
from appliance.reservations.email_queue import add_no_reminders, email_guest, wants_no_reminders
from appliance.reservations.holds import find_next_expiry, release_expired
from appliance.reservations.rows import add_history, get_reservation
from appliance.scheduler import Job
from appliance.venue.model import (
    Venue,
    evening_end,
    evening_hours,
    find_tonight,
    find_zone,
    get_venue,
    list_slots,
    minute_of,
    tonight,
)

BATCH = 100  # maximum number of changes per transaction
CODE_DAYS = 30
# The assumed start and end of an evening without slots, in minutes after midnight.
_DEFAULT_HOURS = (20 * 60, 24 * 60)


def remind(tx: Transaction) -> int:
    """Email a reminder to guests whose evening begins within the venue's `reminder_hours`.

    Returns the number of emails, at most BATCH. Sends one reminder per reservation. Skips guests
    who booked within those hours, have checked in or have unsubscribed.
    """
    due = [id_ for at, id_ in _reminders(tx) if at <= tx.now][:BATCH]
    for reservation_id in due:
        email_guest(tx, reservation_id, "reminder")
    return len(due)


def find_next_reminder(reader: Reader) -> int | None:
    """Return when to look for reminders next, in ms since 1970, or None if there are none.

    This is when the next one is due, or when the first of the later evenings becomes a near one.
    """
    instants = [at for at, _ in _reminders(reader)]
    venue, days = get_venue(reader), _near_days(reader)
    sql = "SELECT min(date) FROM reservation WHERE status = 'confirmed' AND date > :last"
    last = find_tonight(reader) + timedelta(days)
    evening = reader.value(sql, {"last": last.isoformat()})
    if venue.reminder_hours and evening is not None:
        before = date.fromisoformat(evening) - timedelta(days + 1)
        instants.append(evening_end(before, find_zone(reader), venue.evening_ends_at))
    return min(instants, default=None)


def _near_days(reader: Reader) -> int:
    """Return how many days ahead the evenings are whose reminders may be due today or tomorrow."""
    return get_venue(reader).reminder_hours // 24 + 2


def stop_reminders(tx: Transaction, reservation_id: str) -> None:
    """Unsubscribe the reservation's email address from reminders. Only its hash is stored.

    Does nothing if the reservation has no address. Raises NotFound if the id is unknown.
    """
    address = get_reservation(tx, reservation_id).customer_email
    if address is not None:
        add_no_reminders(tx, address)


def _reminders(reader: Reader) -> Iterator[tuple[int, str]]:
    """Yield (due time in ms since 1970, reservation id) for each reminder not yet sent.

    Only of near evenings. They are sorted by date, then by the reservation's start.
    """
    venue, slots = get_venue(reader), tuple(list_slots(reader))
    hours = venue.reminder_hours
    if not hours:
        return
    zone, now = find_zone(reader), reader.now
    first = find_tonight(reader)
    last = first + timedelta(_near_days(reader))
    rows = reader.rows(
        """SELECT id, date, slot, starts, created_at, customer_email FROM reservation r
           LEFT JOIN booking_request q ON q.reservation_seq = r.seq
           WHERE status = 'confirmed' AND date BETWEEN :first AND :last
               AND customer_email IS NOT NULL
               AND checked_in_at IS NULL
               AND (source <> 'partner' OR email_outcome IS NOT 'skipped')
               AND NOT EXISTS (SELECT 1 FROM email l
                               WHERE l.reservation_id = r.id AND l.kind = 'reminder')
           ORDER BY date, starts""",
        {"first": first.isoformat(), "last": last.isoformat()},
    )
    for id_, day, slot, slot_starts, created_at, email in rows:
        evening = date.fromisoformat(day)
        starts = slot_starts
        if slot is None:
            starts, _ = evening_hours(slots, evening, venue.evening_ends_at) or _DEFAULT_HOURS
        begins = minute_of(evening, starts, zone)
        at = begins - hours * HOUR_MS
        if begins <= now or created_at >= at or wants_no_reminders(reader, email):
            continue
        yield at, id_


def complete_evenings(tx: Transaction) -> int:
    """Mark confirmed reservations of past evenings as completed, without webhook events.

    Returns the number of completed reservations, at most BATCH.
    """
    rows = tx.rows(
        """UPDATE reservation
           SET status = 'completed', updated_at = :now, version = version + 1
           WHERE seq IN (
               SELECT seq FROM reservation
               WHERE status = 'confirmed' AND date <= :last
               ORDER BY date LIMIT :limit)
           RETURNING id""",
        {"now": tx.now, "last": last_ended_evening_now(tx).isoformat(), "limit": BATCH},
    )
    completed = [row[0] for row in rows]
    for reservation_id in completed:
        tx.notices.append(ReservationChanged(reservation_id))
        add_history(tx, reservation_id, "completed", "box")
    return len(completed)


def settle_expired_requests(tx: Transaction) -> int:
    """Decline expired requests, longest overdue first. Accept those whose party is inside.

    Returns the number of settled requests, at most BATCH.
    """
    rows = list(tx.rows(
        """SELECT id, arrived FROM reservation
           WHERE status = 'requested' AND expires_at <= :now
           ORDER BY expires_at LIMIT :limit""",
        {"now": tx.now, "limit": BATCH},
    ))  # fmt: skip
    for reservation_id, arrived in rows:
        settle = accept if arrived else decline
        settle(tx, reservation_id, actor="box")
    return len(rows)


def _ended(reader: Reader) -> dict[str, str]:
    return {"ended": last_ended_evening_now(reader).isoformat()}


def remind_of_payments(tx: Transaction) -> int:
    """Email guests once before what they pay in advance is due. Returns the number of emails."""
    due = list(tx.rows(f"SELECT id {_PAYMENT_REMINDERS} AND {_REMINDED_AT} <= :now LIMIT :limit",
                       {"now": tx.now, "limit": BATCH}))  # fmt: skip
    for (reservation_id,) in due:
        email_guest(tx, reservation_id, "payment_reminder")
    return len(due)


def free_unpaid(tx: Transaction) -> int:
    """Cancel reservations not paid by their deadline, if the venue's `payment_frees` is set.

    Returns the number of cancelled reservations, at most BATCH. Keeps those whose party is inside,
    whose evening has ended, or of which a part is paid.
    """
    if not get_venue(tx).payment_frees:
        return 0
    due = list(tx.rows(f"SELECT id {_UNPAID} AND expires_at <= :now LIMIT :limit",
                       {"now": tx.now, "limit": BATCH, **_ended(tx)}))  # fmt: skip
    for (reservation_id,) in due:
        cancel(tx, reservation_id, actor="box")
    return len(due)


# A day before the deadline, or halfway to it if that is later.
_REMINDED_AT = f"(expires_at - min({DAY_MS}, (expires_at - created_at) / 2))"
_UNPAID = "FROM reservation WHERE status = 'pending' AND arrived = 0 AND date > :ended"
_PAYMENT_REMINDERS = """
    FROM reservation r LEFT JOIN booking_request ON reservation_seq = seq
    WHERE status = 'pending' AND expires_at > :now AND customer_email IS NOT NULL
        AND (source <> 'partner' OR email_outcome IS NOT 'skipped')
        AND NOT EXISTS (SELECT 1 FROM email l
                        WHERE l.reservation_id = r.id AND l.kind = 'payment_reminder')"""


def free_access_codes(tx: Transaction) -> int:
    """Release access codes for reuse 30 days after the reservation's evening.

    Returns the number of released codes, at most BATCH.
    """
    last = last_ended_evening_now(tx) - timedelta(days=CODE_DAYS)
    return tx.execute(
        """UPDATE reservation SET access_code = NULL, replaced_codes = NULL
           WHERE seq IN (
               SELECT seq FROM reservation
               WHERE access_code IS NOT NULL AND date <= :last
               ORDER BY date LIMIT :limit)""",
        {"last": last.isoformat(), "limit": BATCH},
    )


def make_reservation_jobs(environment: Environment) -> Job:
    """Return the job that makes all changes in this module when they are due."""
    database = environment.database

    def find_next(reader: Reader) -> int | None:
        instants = (find_next_due(reader), find_next_reminder(reader), find_next_expiry(reader))
        return min((instant for instant in instants if instant is not None), default=None)

    async def run() -> None:
        for action in (
            release_expired, settle_expired_requests, free_unpaid, complete_evenings,
            free_access_codes, remind, remind_of_payments,
        ):  # fmt: skip
            while await database.write(action) == BATCH:
                pass

    name = f"{environment.name}: reservation states"
    return Job(name, database, find_next, run, longest_retry=300.0, needs_clock=True)


def find_next_due(reader: Reader) -> int | None:
    """Return when the next change other than a reminder is due, in ms since 1970, or None."""
    venue = get_venue(reader)
    zone = reader.zones.zone(venue.time_zone)
    instants = [
        reader.value("SELECT min(expires_at) FROM reservation WHERE status = 'requested'"),
        reader.value(f"SELECT min({_REMINDED_AT}) {_PAYMENT_REMINDERS}", {"now": reader.now}),
        reader.value(f"SELECT min(expires_at) {_UNPAID}", _ended(reader))
        if venue.payment_frees
        else None,
    ]
    for condition, days in (("status = 'confirmed'", 0), ("access_code IS NOT NULL", CODE_DAYS)):
        evening = reader.value(f"SELECT min(date) FROM reservation WHERE {condition}")  # noqa: S608
        if evening is not None:
            due_on = date.fromisoformat(evening) + timedelta(days=days)
            instants.append(evening_end(due_on, zone, venue.evening_ends_at))
    return min((instant for instant in instants if instant is not None), default=None)


def last_ended_evening_now(reader: Reader) -> date:
    """Return the date of the latest evening that has ended by now."""
    venue = get_venue(reader)
    return last_ended_evening(reader.now, venue, reader.zones.zone(venue.time_zone))


def last_ended_evening(now: int, venue: Venue, zone: ZoneInfo) -> date:
    """Return the date of the latest evening that had ended by `now` (ms since 1970).

    Uses the same end times as `find_next_due`. The result is not always the evening before tonight,
    because an hour occurs twice when daylight saving time ends.
    """
    day = tonight(now, zone, venue.evening_ends_at) + timedelta(days=1)
    while evening_end(day, zone, venue.evening_ends_at) > now:
        day -= timedelta(days=1)
    return day
