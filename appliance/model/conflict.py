"""A conflict: what doors that were out of each other's reach let in, and should not have."""

from dataclasses import dataclass

ADMITTED_TWICE = "admitted_twice"  # more people are in than were booked
ADMITTED_ANYWAY = "admitted_anyway"  # the box would have refused them, whatever their number


@dataclass(frozen=True, slots=True)
class Admitted:
    """Where and when somebody of the party was let in, by the corrected clock of that terminal."""

    terminal_id: str
    terminal: str
    at: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """A row of `door_conflict`. `despite` is the verdict that the box would have given.

    `this` is the admission that made it one, `other` the first of the same party, if any.
    `arrived` and `guests` are those of that moment. Whoever the box cannot tell is counted
    nowhere: then `reservation_id` is None and both are 0.
    """

    id: str
    kind: str
    despite: str
    reservation_id: str | None
    arrived: int
    guests: int
    this: Admitted
    other: Admitted | None
    found_at: int
    acknowledged_at: int | None
    reason: str | None = None

    @property
    def lacked_role(self) -> bool:
        """Whether they were let in with a reason by a terminal that may give none.

        Where it may, such a reason makes no conflict but of a party that was let in twice.
        """
        return self.kind == ADMITTED_ANYWAY and self.reason is not None
