"""The outbox for guest emails (table `email`): the kinds of email, queries and queueing."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from appliance.clock import DAY_MS
from appliance.core.email_addresses import email_key
from appliance.core.tokens import first_id_of
from appliance.database.connection import Reader, Transaction, known
from appliance.reservations.model import LANGUAGES, Reservation
from appliance.reservations.rows import get_reservation
from appliance.venue.model import get_venue

# Kinds that have the guest pass attached.
WITH_PASS = ("confirmation", "accepted", "changed", "reminder")
# Kinds that have a calendar file attached. In `cancelled`, the file marks the event as cancelled.
WITH_CALENDAR = (*WITH_PASS, "cancelled")
UNASKED = ("reminder",)  # kinds that guests can unsubscribe from
# Kinds that go to the venue instead of the guest, and the venue's rule that switches each on.
VENUE_KINDS = {
    "house_request": "hears_requests",
    "house_cancelled": "hears_cancellations",
    "house_changed": "hears_cancellations",
    "house_payment": "hears_payments",
}
_RETRY_SECONDS = (60, 300, 1800, 7200, 21600)
_DAILY_SECONDS = 86400
SETTINGS_TROUBLE = "settings: "  # prefix of errors that the owner must fix in the settings


@dataclass(frozen=True, slots=True)
class Email:
    """A row of the table `email`. Times are in ms since 1970.

    `recipient` is None if the guest's data was erased.
    """

    id: str
    reservation_id: str
    kind: str
    recipient: str | None
    language: str
    state: str
    attempts: int
    due_at: int
    created_at: int
    sent_at: int | None
    trouble: str | None
    words: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one attempt to send an email.

    - `accepted`: the mail server accepted the email.
    - `refused`: this email cannot be sent, for example because the server refused the recipient
      permanently. There is no further attempt.
    - `deferred`: a temporary error affected only this email.
    - `unreachable`: no email can be sent at present, because of a problem with the mail
      server or the settings.

    `trouble` is the error, without personal data.
    """

    result: Literal["accepted", "refused", "deferred", "unreachable"]
    trouble: str | None = None


def retry_delay(attempts: int) -> int:
    """Return the delay before the next attempt, in ms, after `attempts` failed attempts."""
    is_daily = attempts > len(_RETRY_SECONDS)
    return 1000 * (_DAILY_SECONDS if is_daily else _RETRY_SECONDS[max(attempts, 1) - 1])


_COLUMNS = """
    id, reservation_id, kind, recipient, language, state, attempts, due_at, created_at,
    sent_at, trouble, words
"""


def find_email(reader: Reader, email_id: str) -> Email | None:
    """Return the email with this id, or None."""
    sql = f"SELECT {_COLUMNS} FROM email WHERE id = :id"  # noqa: S608
    return reader.one(Email, sql, {"id": email_id})


def get_email(reader: Reader, email_id: str) -> Email:
    """Return the email with this id. Raises NotFound if there is none."""
    return known(find_email(reader, email_id))


def find_email_outcomes(reader: Reader, reservations: Iterable[Reservation]) -> dict[str, str]:
    """Return a map from reservation id to what became of the latest email to its guest.

    `sent`: the mail server accepted it, or the test environment stored it. `failed`: not yet, or
    never. A reservation without emails is not in the map.
    """
    sql = """SELECT reservation_id, iif(state = 'sent' OR state = 'kept', 'sent', 'failed')
             FROM json_each(:ids) wanted CROSS JOIN email ON reservation_id = wanted.value
             WHERE kind NOT GLOB 'house_*' ORDER BY email.id"""
    return dict(reader.rows(sql, {"ids": json.dumps([each.id for each in reservations])}))


def list_emails(reader: Reader, *, limit: int = 100) -> list[Email]:
    """Return the latest `limit` emails in any state, newest first."""
    sql = f"SELECT {_COLUMNS} FROM email ORDER BY created_at DESC, id DESC LIMIT :limit"  # noqa: S608
    return [Email(*row) for row in reader.rows(sql, {"limit": limit})]


def list_waiting_emails(reader: Reader) -> list[Email]:
    """Return all waiting emails, untried ones first, each group in order of due time."""
    sql = f"""SELECT {_COLUMNS} FROM email WHERE state = 'waiting'
              ORDER BY attempts > 0, due_at, id"""  # noqa: S608
    return [Email(*row) for row in reader.rows(sql)]


def find_due_email(reader: Reader) -> str | None:
    """Return the id of the next email to send, or None if none is due."""
    emails, now = list_waiting_emails(reader), reader.now
    return next((email.id for email in emails if _due_time(email, now) <= now), None)


def next_email_due_at(reader: Reader) -> int | None:
    """Return when the next email is due, in ms since 1970, or None if no email is waiting."""
    emails = list_waiting_emails(reader)
    return min((_due_time(email, reader.now) for email in emails), default=None)


def _due_time(email: Email, now: int) -> int:
    """Return when a waiting email is due.

    If the stored time is later than the retry delay allows, the clock has been set back since, so
    the email is due now.
    """
    return email.due_at if email.due_at <= now + retry_delay(email.attempts) else now


def postpone_emails(tx: Transaction) -> None:
    """Postpone the waiting emails so that none is due for a minute.

    This limits how often the box tries a mail server that is not working.
    """
    sql = "UPDATE email SET due_at = max(due_at, :later) WHERE state = 'waiting'"
    tx.execute(sql, {"later": tx.now + retry_delay(1)})


def _is_test_outbox(reader: Reader) -> bool:
    """Whether this is the database of the test environment, which sends no email."""
    return Path(reader.connection.filename).stem == "test"


def was_written_to(reader: Reader, reservation_id: str) -> bool:
    """Whether an email about this reservation was sent to its guest, stored or queued.

    Failed emails and cancellation emails do not count.
    """
    sql = """SELECT EXISTS (SELECT 1 FROM email
             WHERE reservation_id = :id AND state <> 'failed' AND kind <> 'cancelled'
                 AND kind NOT GLOB 'house_*')"""
    return bool(reader.value(sql, {"id": reservation_id}))


def _count_emails_to(reader: Reader, address: str, since: int) -> int:
    """Return how many emails to the mailbox of `address` were queued after `since`.

    `since` is in ms since 1970. `me+tag@example.com` and `me@example.com` are the same mailbox.
    """
    sql = "SELECT recipient FROM email WHERE id >= :first AND recipient IS NOT NULL"
    rows = reader.rows(sql, {"first": first_id_of(since)})
    wanted = _mailbox_of(address)
    return sum(_mailbox_of(recipient) == wanted for (recipient,) in rows)


def _mailbox_of(address: str) -> str:
    name, _, domain = email_key(address).rpartition("@")
    return f"{name.partition('+')[0]}@{domain}"


def _find_email_queued_now(tx: Transaction, reservation_id: str, kind: str) -> str | None:
    """Return the id of the email of `kind` that this transaction has already queued, or None."""
    sql = """SELECT id FROM email
             WHERE reservation_id = :id AND kind = :kind AND created_at = :now"""
    return tx.one(str, sql, {"id": reservation_id, "kind": kind, "now": tx.now})


def count_emails(reader: Reader) -> dict[str, int]:
    """Return the number of emails in each state."""
    return dict(reader.rows("SELECT state, count(*) FROM email GROUP BY state"))


def list_email_errors(reader: Reader, limit: int) -> list[tuple[int, str]]:
    """Return (created at, error) for the latest `limit` unsent emails with an error.

    `created at` is in ms since 1970; the newest email comes first.
    """
    sql = """SELECT created_at, trouble FROM email
             WHERE trouble IS NOT NULL AND state IN ('waiting', 'failed')
             ORDER BY created_at DESC LIMIT :limit"""
    return [(created_at, error) for created_at, error in reader.rows(sql, {"limit": limit})]


def add_no_reminders(tx: Transaction, address: str) -> None:
    """Unsubscribe an email address from reminders."""
    sql = "INSERT INTO no_reminders (address_hash, at) VALUES (:hash, :now) ON CONFLICT DO NOTHING"
    tx.execute(sql, {"hash": _hash(address), "now": tx.now})


def wants_no_reminders(reader: Reader, address: str) -> bool:
    """Whether an email address is unsubscribed from reminders."""
    sql = "SELECT 1 FROM no_reminders WHERE address_hash = :hash"
    return reader.row(sql, {"hash": _hash(address)}) is not None


def forget_no_reminders(tx: Transaction, address: str) -> None:
    """Delete the record that an erased email address is unsubscribed from reminders.

    Keeps the record if another reservation still has that address.
    """
    if not wants_no_reminders(tx, address):
        return
    wanted = email_key(address)
    others = tx.rows("SELECT customer_email FROM reservation WHERE customer_email IS NOT NULL")
    if not any(email_key(other) == wanted for (other,) in others):
        tx.execute("DELETE FROM no_reminders WHERE address_hash = :hash", {"hash": _hash(address)})


def _hash(address: str) -> bytes:
    return hashlib.sha256(email_key(address).encode()).digest()


_EMAILS_A_DAY = 6


@dataclass(frozen=True, slots=True)
class EmailQueued:
    """A notice, published after a commit, that an email is waiting to be sent."""

    email_id: str


def email_guest(
    tx: Transaction, reservation_id: str, kind: str,
    *, by_guest: bool = False, asked: bool = False, words: str | None = None,
) -> str | None:  # fmt: skip
    """Queue an email of `kind` to the guest. Return its id, or None if no email is due.

    No email is due if

    - the reservation has no email address,
    - the partner set `notifyCustomer` to false at the booking, and has not `asked` for this one,
    - the email is a cancellation and the guest has had no other email about the reservation, or
    - `by_guest` is True and six emails to the address were queued in the last 24 hours. A guest can
      enter another person's address, so this limit protects that person.

    `words` is a line from the venue, which the email quotes. Within a transaction, each kind is
    queued only once per reservation.
    """
    reservation = get_reservation(tx, reservation_id)
    is_unwanted = reservation.source == "partner" and reservation.email_outcome == "skipped"
    if (is_unwanted and not asked) or reservation.customer_email is None:
        return None
    if kind == "cancelled" and not was_written_to(tx, reservation_id):
        return None
    yesterday = tx.now - DAY_MS
    if by_guest and _count_emails_to(tx, reservation.customer_email, yesterday) >= _EMAILS_A_DAY:
        return None
    return _find_email_queued_now(tx, reservation_id, kind) or queue_email(
        tx, reservation_id, kind, reservation.customer_email, reservation.language,
        keep=_is_test_outbox(tx), words=words,
    )  # fmt: skip


def fails_in_test(address: str) -> bool:
    """Whether an email to this address fails in the test environment, so that partners see it."""
    return address.rpartition("@")[2].lower() == "test.invalid"


def notify_venue(tx: Transaction, reservation_id: str, kind: str) -> None:
    """Queue an email of one of VENUE_KINDS to the venue, if the venue's rules require it."""
    venue, is_test = get_venue(tx), _is_test_outbox(tx)
    if venue.house_email is None or not getattr(venue, VENUE_KINDS[kind]):
        return
    language = None if is_test else find_venue_language(tx)
    queue_email(tx, reservation_id, kind, venue.house_email, language, keep=is_test)


def find_venue_language(reader: Reader) -> str | None:
    """Return the language of emails to the venue, which is that of the first owner."""
    sql = "SELECT language FROM staff WHERE role = 'owner' ORDER BY created_at LIMIT 1"
    return reader.one(str, sql, {})


def queue_email(
    tx: Transaction, reservation_id: str, kind: str, recipient: str, language: str | None,
    *, keep: bool, words: str | None = None,
) -> str:  # fmt: skip
    """Add an email of `kind` to the outbox and return its id.

    The email is in French if `language` is not supported. With `keep`, which the test environment
    uses, the email is stored but never sent, and one to `fails_in_test` counts as failed.
    """
    email_id, state = tx.new_id(), "waiting"
    if keep:
        state = "failed" if fails_in_test(recipient) else "kept"
    tx.insert(
        "email",
        {"id": email_id, "reservation_id": reservation_id, "kind": kind, "recipient": recipient,
         "words": words or None,
         "language": language if language in LANGUAGES else "fr",
         "state": state, "due_at": tx.now, "created_at": tx.now},
    )  # fmt: skip
    if not keep:
        tx.notices.append(EmailQueued(email_id))
    return email_id
