"""Record what became of an attempt to send a letter, and when the next one is due."""

from datetime import date

from appliance.model.evening import evening_end
from appliance.model.letter import SETTINGS_TROUBLE, Letter, Outcome, retry_delay
from appliance.store.conditions import Condition, drop_condition, put_condition
from appliance.store.connection import Transaction
from appliance.store.letters import find_letter
from appliance.store.reservations import get_reservation
from appliance.store.venue import get_venue

MAIL_SETTINGS = "mail_settings"  # only the owner can end it
MAIL_UNREACHABLE = "mail_unreachable"
_REFUSED = "refused with"


def record_letter(tx: Transaction, letter_id: str, outcome: Outcome) -> int | None:
    """Seconds until the next attempt, or None when there will be none.

    A letter is retried until the evening is over: then it has nothing left to say. One that
    no longer waits is left alone, so an outcome that comes twice counts once. What keeps every
    letter from leaving is noted as a condition, until one goes out again.
    """
    letter = find_letter(tx, letter_id)
    if letter is None or letter.state != "waiting":
        return None
    _note_condition(tx, outcome)
    attempts = letter.attempts + 1
    told = {"attempts": attempts, "trouble": outcome.trouble}
    if outcome.result == "accepted":
        tx.update("letter", letter_id, state="sent", sent_at=tx.now, **told)
        return None
    delay = retry_delay(attempts)
    due_at = tx.now + delay * 1000
    if outcome.result == "refused" or due_at >= _evening_end(tx, letter):
        tx.update("letter", letter_id, state="failed", **told)
        return None
    tx.update("letter", letter_id, due_at=due_at, **told)
    return delay


def forget_mail_trouble(tx: Transaction) -> None:
    """Nothing is known against the mail server: nothing waits, or nothing was tried yet."""
    drop_condition(tx, MAIL_SETTINGS, "")
    drop_condition(tx, MAIL_UNREACHABLE, "")


def _note_condition(tx: Transaction, outcome: Outcome) -> None:
    trouble = outcome.trouble or ""
    if outcome.result == "accepted" or (_REFUSED in trouble and outcome.result != "unreachable"):
        forget_mail_trouble(tx)  # the server speaks with us, whatever it says of this letter
    elif outcome.result != "unreachable":
        return  # it was not asked
    elif trouble.startswith(SETTINGS_TROUBLE):
        reason = trouble.removeprefix(SETTINGS_TROUBLE)
        _put(tx, MAIL_SETTINGS, f"no letter leaves until mail.* is corrected: {reason}")
    else:
        _put(tx, MAIL_UNREACHABLE, f"letters wait, and are tried again: {trouble}")


def _put(tx: Transaction, name: str, sentence: str) -> None:
    other = MAIL_UNREACHABLE if name == MAIL_SETTINGS else MAIL_SETTINGS
    drop_condition(tx, other, "")
    put_condition(tx, Condition(name, "", tx.now, sentence))


def _evening_end(tx: Transaction, letter: Letter) -> int:
    venue = get_venue(tx)
    day = date.fromisoformat(get_reservation(tx, letter.reservation_id).date)
    return evening_end(day, tx.zones.zone(venue.time_zone), venue.evening_ends_at)
