"""Record what became of an attempt to send a letter, and when the next one is due."""

from datetime import date

from appliance.model.evening import evening_end
from appliance.model.letter import Letter, Outcome, retry_delay
from appliance.store.connection import Transaction
from appliance.store.letters import find_letter, update_waiting_letter
from appliance.store.reservations import get_reservation
from appliance.store.venue import get_venue


def record_letter(tx: Transaction, letter_id: str, outcome: Outcome) -> int | None:
    """Seconds until the next attempt, or None when there will be none.

    A letter is retried until the evening is over: then it has nothing left to say. One that
    no longer waits is left alone, so an outcome that comes twice counts once.
    """
    letter = find_letter(tx, letter_id)
    if letter is None or letter.state != "waiting":
        return None
    attempts = letter.attempts + 1
    if outcome.result == "accepted":
        update_waiting_letter(
            tx, letter_id, state="sent", sent_at=tx.now, attempts=attempts, trouble=None
        )
        return None
    delay = retry_delay(attempts)
    due_at = tx.now + delay * 1000
    if outcome.result == "refused" or due_at >= _evening_end(tx, letter):
        update_waiting_letter(
            tx, letter_id, state="failed", attempts=attempts, trouble=outcome.trouble
        )
        return None
    update_waiting_letter(tx, letter_id, due_at=due_at, attempts=attempts, trouble=outcome.trouble)
    return delay


def _evening_end(tx: Transaction, letter: Letter) -> int:
    venue = get_venue(tx)
    day = date.fromisoformat(get_reservation(tx, letter.reservation_id).date)
    return evening_end(day, tx.zones.zone(venue.time_zone), venue.evening_ends_at)
