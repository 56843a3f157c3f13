"""Reservations from any source: statuses and data (interface, sections 2.5 and 3)."""

from dataclasses import dataclass

STATUSES = ("requested", "confirmed", "completed", "pending", "partial", "cancelled", "declined")
FREEING_STATUSES = ("cancelled", "declined")
SOURCES = ("platform", "manual", "partner")
_HALVES = frozenset({"عبد", "أبو", "ابو", "أم", "ابن", "abd", "abou", "abu", "oum", "umm"})
_ARTICLES = frozenset({"el", "al", "er", "ar", "es", "as", "en", "an"})


@dataclass(frozen=True, slots=True)
class Issued:
    """The result of a booking, returned again when its idempotency key is replayed.

    `email_outcome` is None until the mail server has answered (interface, section 2.7).
    """

    reservation_id: str
    access_code: str
    link_expires_at: int
    email_outcome: str | None = None


@dataclass(frozen=True, slots=True)
class Reservation:
    """A row of `reservation`, with its table's name and number. Instants are ms since 1970."""

    seq: int
    id: str
    status: str
    source: str
    table_id: str
    table_name: str
    date: str
    slot: str | None
    starts: int
    ends: int
    guests: int
    customer_name: str | None
    customer_email: str | None
    customer_phone: str | None
    notes: str | None
    language: str | None
    access_code: str | None
    pass_id: bytes
    generation: int
    arrived: int
    checked_in_at: int | None
    link_expires_at: int
    created_at: int
    updated_at: int
    version: int
    cancelled_at: int | None
    expires_at: int | None
    external_ref: str | None
    lineage: str | None
    idempotency_key: str | None
    request_hash: bytes | None
    issued_code: str | None
    email_outcome: str | None
    late_at: int | None
    vip: int
    table_number: str

    @property
    def customer_first_name(self) -> str | None:
        """The first word of the customer's name; None once erased."""
        words = (self.customer_name or "").split(maxsplit=1)
        return words[0] if words else None

    @property
    def customer_given_name(self) -> str | None:
        """The given name, for salutations; keeps compound names such as “Abd el …” together."""
        words = (self.customer_name or "").split()
        if words[1:] == [] or words[0].casefold() not in _HALVES:
            return self.customer_first_name
        return " ".join(words[: 3 if words[1].casefold() in _ARTICLES else 2])

    @property
    def holds(self) -> bool:
        """Whether it blocks its table (interface, section 3)."""
        return self.status not in FREEING_STATUSES


LAST_GENERATION = 255
