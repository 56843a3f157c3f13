"""Queue a letter: write it down in the transaction of its cause, to be sent after the commit."""

from dataclasses import dataclass

from appliance.model.letter import KINDS, LANGUAGES
from appliance.store.connection import Transaction


@dataclass(frozen=True, slots=True)
class LetterQueued:
    """A notice after commit: this letter waits to be sent."""

    letter_id: str


def queue_letter(
    tx: Transaction,
    reservation_id: str,
    kind: str,
    recipient: str,
    language: str | None,
    *,
    keep: bool,
) -> str:
    """Write a letter of `kind` into the outbox; its id.

    `keep` (the test environment) makes the outbox its mailbox: it is never sent. A language
    that we do not write is French. ValueError for a kind that does not exist.
    """
    if kind not in KINDS:
        raise ValueError(f"no such kind of letter: {kind}")
    letter_id = tx.new_id()
    tx.insert(
        "letter",
        {
            "id": letter_id,
            "reservation_id": reservation_id,
            "kind": kind,
            "recipient": recipient,
            "language": language if language in LANGUAGES else "fr",
            "state": "kept" if keep else "waiting",
            "due_at": tx.now,
            "created_at": tx.now,
        },
    )
    if not keep:
        tx.notices.append(LetterQueued(letter_id))
    return letter_id
