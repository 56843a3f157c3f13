"""Queue a letter: write it down in the transaction of its cause, to be sent after the commit."""

from dataclasses import dataclass

from appliance.model.letter import LANGUAGES
from appliance.store.connection import Transaction
from appliance.store.letters import (
    count_letters_to,
    find_letter_written_now,
    is_test_outbox,
    was_written_to,
)
from appliance.store.reservations import get_reservation

_DAY = 86_400_000  # ms
_LETTERS_A_DAY = 6


@dataclass(frozen=True, slots=True)
class LetterQueued:
    """A notice after commit: this letter waits to be sent."""

    letter_id: str


def write_to_guest(
    tx: Transaction, reservation_id: str, kind: str, *, by_guest: bool = False
) -> str | None:
    """Queue a letter of `kind` in the guest's language; its id, None where none is due.

    None is due without an address, to the guest of a partner who writes to them itself
    (`notifyCustomer` false), nor of a cancellation to somebody who was never written to. The
    same news twice in a transaction is one letter. What a guest causes on a page (`by_guest`) is
    not written to an address that had six letters in a day: anybody may have typed it.
    """
    reservation = get_reservation(tx, reservation_id)
    if reservation.source == "partner" and reservation.email_outcome == "skipped":
        return None
    if reservation.customer_email is None:
        return None
    if kind == "cancelled" and not was_written_to(tx, reservation_id):
        return None
    had = count_letters_to(tx, reservation.customer_email, tx.now - _DAY) if by_guest else 0
    if had >= _LETTERS_A_DAY:
        return None
    return find_letter_written_now(tx, reservation_id, kind) or queue_letter(
        tx, reservation_id, kind, reservation.customer_email, reservation.language,
        keep=is_test_outbox(tx),
    )  # fmt: skip


def queue_letter(
    tx: Transaction, reservation_id: str, kind: str, recipient: str, language: str | None,
    *, keep: bool,
) -> str:  # fmt: skip
    """Write a letter of `kind` into the outbox; its id.

    `keep` (the test environment) makes the outbox its mailbox: it is never sent. A language
    that we do not write is French.
    """
    letter_id = tx.new_id()
    tx.insert(
        "letter",
        {"id": letter_id, "reservation_id": reservation_id, "kind": kind, "recipient": recipient,
         "language": language if language in LANGUAGES else "fr",
         "state": "kept" if keep else "waiting", "due_at": tx.now, "created_at": tx.now},
    )  # fmt: skip
    if not keep:
        tx.notices.append(LetterQueued(letter_id))
    return letter_id
