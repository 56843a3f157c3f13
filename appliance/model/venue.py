"""The venue, its tables and its slots (interface, sections 2.1 to 2.3)."""

import hashlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the venue; `number` is its label in the room (T1, T2, …)."""

    id: str
    number: str
    name: str
    capacity_min: int
    capacity_max: int
    minimum_spend: int
    type: str
    bookable: bool


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of the evening that repeats on `days_of_week` (0 = Sunday … 6 = Saturday).

    `end` at or before `start` is the next morning.
    """

    id: str
    name: str
    start: str
    end: str
    days_of_week: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Closing:
    """Dates, both included, on which nothing can be booked."""

    id: str
    first: str
    last: str
    reason: str

    def holds(self, day: str) -> bool:
        """Whether `day` (YYYY-MM-DD) is one of them."""
        return self.first <= day <= self.last


@dataclass(frozen=True, slots=True)
class Venue:
    """The venue's own row, without its tables and slots."""

    id: str
    name: str
    slug: str
    status: str
    reservation_mode: str
    auto_confirm: bool
    request_expiry_hours: int
    currency: str
    time_zone: str
    evening_ends_at: str
    policies: dict[str, Any] | None
    address: str | None = None
    map_url: str | None = None

    @property
    def shows_contacts(self) -> bool:
        """Whether partners see customers' contacts (interface, section 4, rule 1)."""
        return self.reservation_mode == "free"

    @property
    def way(self) -> str | None:
        """Where a map shows the way: the venue's own page for that, or a search for its street."""
        if self.map_url or not self.address:
            return self.map_url
        return f"https://www.openstreetmap.org/search?query={quote(self.address, safe='')}"


def fingerprint(value: object) -> str:
    """What a form carries of the thing that its author saw: another value, another text."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:32]
