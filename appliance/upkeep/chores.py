"""What the clock does to reservations, in batches that hold up no booking."""

from collections.abc import Callable
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from appliance.actions.answer_request import decline
from appliance.actions.remind import find_next_reminder, remind
from appliance.environment import Environment
from appliance.model.evening import evening_end, tonight
from appliance.model.venue import Venue
from appliance.scheduler import Job
from appliance.store.connection import Reader, Transaction
from appliance.store.due import (
    complete_up_to,
    find_first_evening_with_codes,
    find_first_expiry,
    find_first_open_evening,
    free_codes_up_to,
    list_expired_requests,
)
from appliance.store.reservations import add_history
from appliance.store.venue import get_venue

BATCH = 100
CODE_DAYS = 30


def complete_evenings(tx: Transaction) -> int:
    """`confirmed` becomes `completed` once the evening is over; announces nothing."""
    completed = complete_up_to(tx, last_ended_evening_now(tx), BATCH)
    for reservation_id in completed:
        add_history(tx, reservation_id, "completed", "box")
    return len(completed)


def decline_expired_requests(tx: Transaction) -> int:
    """A request that nobody answered is declined, with `reservation.declined`."""
    expired = list_expired_requests(tx, BATCH)
    for reservation_id in expired:
        decline(tx, reservation_id, actor="box")
    return len(expired)


def free_access_codes(tx: Transaction) -> int:
    """Codes may be given out anew 30 days after their evening."""
    return free_codes_up_to(tx, last_ended_evening_now(tx) - timedelta(days=CODE_DAYS), BATCH)


CHORES = (complete_evenings, decline_expired_requests, free_access_codes)


def make_chores(environment: Environment, may_expire: Callable[[], bool] = lambda: True) -> Job:
    """The job that does all of it, and reminds guests. `may_expire`: as of ClockGate."""
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
    """When the first chore has something to do, in ms since 1970; None when none ever has."""
    venue = get_venue(reader)
    zone = reader.zones.zone(venue.time_zone)
    instants = [find_first_expiry(reader)]
    if open_evening := find_first_open_evening(reader):
        instants.append(_end(open_evening, venue, zone))
    if code_evening := find_first_evening_with_codes(reader):
        instants.append(_end(code_evening + timedelta(days=CODE_DAYS), venue, zone))
    return min((instant for instant in instants if instant is not None), default=None)


def last_ended_evening_now(reader: Reader) -> date:
    """The latest evening that is over by now."""
    venue = get_venue(reader)
    return last_ended_evening(reader.now, venue, reader.zones.zone(venue.time_zone))


def last_ended_evening(now: int, venue: Venue, zone: ZoneInfo) -> date:
    """The latest evening that is over, by the very instants that `find_next_due` names.

    Not simply the day before tonight: when the clock goes back, an hour belongs to both.
    """
    day = tonight(now, zone, venue.evening_ends_at) + timedelta(days=1)
    while _end(day, venue, zone) > now:
        day -= timedelta(days=1)
    return day


def _end(day: date, venue: Venue, zone: ZoneInfo) -> int:
    return evening_end(day, zone, venue.evening_ends_at)
