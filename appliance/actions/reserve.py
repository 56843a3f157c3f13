"""Reserve: a partner's booking, confirmed at once (interface, sections 3 and 4)."""

from dataclasses import dataclass, replace

from appliance.actions.grant import grant
from appliance.actions.queue_letter import queue_letter
from appliance.environment import EnvironmentName
from appliance.model.api_key import ApiKey
from appliance.model.booking import Booking
from appliance.model.reservation import Issued
from appliance.store.connection import Transaction
from appliance.store.reservations import (
    count_body_mismatch,
    find_issued,
    get_reservation,
    set_email_outcome,
)


@dataclass(frozen=True, slots=True)
class Granted:
    """The outcome of a request: what was issued, and whether that is a replay.

    `letter_id` is that of the letter to send before answering. Of a replay, `status` is that
    of the reservation now, and `other_body` tells that it came with another body than the
    first request.
    """

    issued: Issued
    replayed: bool
    letter_id: str | None = None
    other_body: bool = False
    status: str = "confirmed"


def reserve(
    tx: Transaction, environment: EnvironmentName, key: ApiKey, booking: Booking
) -> Granted:
    """Grant the booking, or answer again what its idempotency key was answered before.

    Refusals: those of `grant`. A refused attempt leaves no trace, so the same idempotency
    key may be tried again.
    """
    assert booking.idempotency_key is not None  # noqa: S101 - parse_booking has required it
    earlier = find_issued(tx, key.lineage, booking.idempotency_key)
    if earlier is not None:
        return _replay(tx, *earlier, booking)
    writes_letter = booking.notify_customer and booking.customer_email is not None
    email_outcome = _outcome_so_far(environment, writes_letter=writes_letter)
    issued = grant(
        tx,
        booking,
        source="partner",
        status="confirmed",
        actor=f"key:{key.id}",
        external_ref=booking.external_ref,
        lineage=key.lineage,
        idempotency_key=booking.idempotency_key,
        request_hash=booking.fingerprint(),
        email_outcome=email_outcome,
    )
    letter_id = None
    if writes_letter and booking.customer_email is not None:
        letter_id = queue_letter(
            tx, issued.reservation_id, "confirmation", booking.customer_email, booking.language,
            keep=environment == "test",
        )  # fmt: skip
    return Granted(
        replace(issued, email_outcome=email_outcome), replayed=False, letter_id=letter_id
    )


def settle_email(tx: Transaction, issued: Issued, outcome: str) -> Issued:
    """Fix `notifications.email` for good: replays answer the same."""
    set_email_outcome(tx, issued.reservation_id, outcome)
    return replace(issued, email_outcome=outcome)


def _outcome_so_far(environment: EnvironmentName, *, writes_letter: bool) -> str | None:
    """`skipped`, `sent` to the test outbox, or unknown until the mail server answered."""
    if not writes_letter:
        return "skipped"
    return "sent" if environment == "test" else None


def _replay(
    tx: Transaction, earlier: Issued, request_hash: bytes | None, booking: Booking
) -> Granted:
    # Of an erased guest nothing is left to compare with.
    other_body = request_hash is not None and request_hash != booking.fingerprint()
    if other_body:
        count_body_mismatch(tx, earlier.reservation_id)
    if earlier.email_outcome is None:  # the box died between the commit and the answer
        earlier = settle_email(tx, earlier, "failed")
    status = get_reservation(tx, earlier.reservation_id).status
    return Granted(earlier, replayed=True, other_body=other_body, status=status)
