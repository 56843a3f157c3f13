"""Time-driven changes of reservations: completion, expired requests, freed codes, reminders."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from appliance.database.connection import Reader, Transaction
from appliance.environment import Environment
from appliance.outbox import ReservationChanged
from appliance.reservations.change import decline
from appliance.reservations.emails import add_no_reminders, email_guest, wants_no_reminders
from appliance.reservations.rows import add_history, get_reservation
from appliance.scheduler import Job
from appliance.venue.model import Venue, evening_end, evening_hours, minute_of, tonight
from appliance.venue.rows import get_venue, list_slots


@dataclass(frozen=True, slots=True)
class Expected:
    """A guest to remind. `starts` is in minutes after midnight; 0 without a slot."""

    id: str
    date: date
    slot: str | None
    starts: int
    created_at: int
    email: str


def list_unreminded(reader: Reader, first: date) -> Iterator[Expected]:
    """Guests from evening `first` on with an email address and no reminder yet, by start."""
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
    """When the next unanswered request expires, in ms since 1970; None without requests."""
    found = reader.value("SELECT min(expires_at) FROM reservation WHERE status = 'requested'")
    return None if found is None else int(found)


def list_expired_requests(reader: Reader, limit: int) -> list[str]:
    """Ids of up to `limit` expired requests, longest overdue first."""
    rows = reader.rows(
        """SELECT id FROM reservation
           WHERE status = 'requested' AND expires_at <= :now
           ORDER BY expires_at LIMIT :limit""",
        {"now": reader.now, "limit": limit},
    )
    return [row[0] for row in rows]


def complete_up_to(tx: Transaction, last_evening: date, limit: int) -> list[str]:
    """Complete up to `limit` confirmed reservations up to that evening. Returns their ids."""
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
    """Free the access codes of up to `limit` reservations up to that evening. Returns how many."""
    return tx.execute(
        """UPDATE reservation SET access_code = NULL
           WHERE seq IN (
               SELECT seq FROM reservation
               WHERE access_code IS NOT NULL AND date <= :last
               ORDER BY date LIMIT :limit)""",
        {"last": last_evening.isoformat(), "limit": limit},
    )


_HOUR = 3_600_000
_BY_DEFAULT = (20 * 60, 24 * 60)  # evening hours if the venue offers no slots that day


def remind(tx: Transaction, hours: int, limit: int) -> int:
    """Email up to `limit` guests whose evening begins within `hours`. Returns how many.

    Sends one reminder per reservation; skips guests who booked within those hours, have checked
    in, or unsubscribed.
    """
    due = [guest for at, guest in _reminders(tx, hours) if at <= tx.now]
    for guest in due[:limit]:
        email_guest(tx, guest.id, "reminder")
    return len(due[:limit])


def find_next_reminder(reader: Reader, hours: int) -> int | None:
    """When the next reminder is due, in ms since 1970; None without one."""
    # Slots after midnight overlap the next day's, so the first reminders may be out of order.
    return min((at for at, _ in islice(_reminders(reader, hours), 200)), default=None)


def stop_reminders(tx: Transaction, reservation_id: str) -> None:
    """Unsubscribe the reservation's email address, stored as a hash; no-op without an address.

    Raises NotFound if the id is unknown.
    """
    address = get_reservation(tx, reservation_id).customer_email
    if address is not None:
        add_no_reminders(tx, address)


def _reminders(reader: Reader, hours: int) -> Iterator[tuple[int, Expected]]:
    venue, slots = get_venue(reader), tuple(list_slots(reader))
    zone, now = reader.zones.zone(venue.time_zone), reader.now
    first = tonight(now, zone, venue.evening_ends_at)
    last = first + timedelta(days=hours // 24 + 2)
    nearest = None
    for guest in list_unreminded(reader, first):
        if guest.date > last and nearest is not None and guest.date > nearest:
            return
        starts = guest.starts
        if guest.slot is None:
            starts, _ = evening_hours(slots, guest.date, venue.evening_ends_at) or _BY_DEFAULT
        begins = minute_of(guest.date, starts, zone)
        at = begins - hours * _HOUR
        if begins <= now or guest.created_at >= at or wants_no_reminders(reader, guest.email):
            continue
        nearest = nearest or guest.date + timedelta(days=1)
        yield at, guest


BATCH = 100
CODE_DAYS = 30


def complete_evenings(tx: Transaction) -> int:
    """Complete confirmed reservations of past evenings, without events. Returns how many."""
    completed = complete_up_to(tx, last_ended_evening_now(tx), BATCH)
    for reservation_id in completed:
        add_history(tx, reservation_id, "completed", "box")
    return len(completed)


def decline_expired_requests(tx: Transaction) -> int:
    """Decline expired requests, with event `reservation.declined`. Returns how many."""
    expired = list_expired_requests(tx, BATCH)
    for reservation_id in expired:
        decline(tx, reservation_id, actor="box")
    return len(expired)


def free_access_codes(tx: Transaction) -> int:
    """Free access codes for reuse 30 days after their evening. Returns how many."""
    return free_codes_up_to(tx, last_ended_evening_now(tx) - timedelta(days=CODE_DAYS), BATCH)


CHORES = (complete_evenings, decline_expired_requests, free_access_codes)


def make_reservation_jobs(
    environment: Environment, may_expire: Callable[[], bool] = lambda: True
) -> Job:
    """Create the job that runs the chores and the reminders. `may_expire` is as in ClockGate."""
    database, hours = environment.database, environment.settings.mail.reminder_hours

    def find_next(reader: Reader) -> int | None:
        reminder = find_next_reminder(reader, hours) if hours else None
        found = (find_next_due(reader), reminder)
        return min((instant for instant in found if instant is not None), default=None)

    def remind_guests(tx: Transaction) -> int:
        return remind(tx, hours, BATCH) if hours else 0

    async def do_what_is_due() -> None:
        for chore in (*CHORES, remind_guests):
            while await database.write(chore) == BATCH:
                pass

    name = f"{environment.name}: chores"
    return Job(name, database, find_next, do_what_is_due, may_expire, longest_retry=300.0)


def find_next_due(reader: Reader) -> int | None:
    """When the next chore is due, in ms since 1970; None if there is none."""
    venue = get_venue(reader)
    zone = reader.zones.zone(venue.time_zone)
    instants = [find_first_expiry(reader)]
    if open_evening := find_first_open_evening(reader):
        instants.append(_end(open_evening, venue, zone))
    if code_evening := find_first_evening_with_codes(reader):
        instants.append(_end(code_evening + timedelta(days=CODE_DAYS), venue, zone))
    return min((instant for instant in instants if instant is not None), default=None)


def last_ended_evening_now(reader: Reader) -> date:
    """The latest evening that is over now."""
    venue = get_venue(reader)
    return last_ended_evening(reader.now, venue, reader.zones.zone(venue.time_zone))


def last_ended_evening(now: int, venue: Venue, zone: ZoneInfo) -> date:
    """The latest evening that is over at `now`, by the same instants as `find_next_due`.

    Not always the day before tonight: when daylight saving ends, an hour occurs twice.
    """
    day = tonight(now, zone, venue.evening_ends_at) + timedelta(days=1)
    while _end(day, venue, zone) > now:
        day -= timedelta(days=1)
    return day


def _end(day: date, venue: Venue, zone: ZoneInfo) -> int:
    return evening_end(day, zone, venue.evening_ends_at)
