"""A signed-in browser (docs/security.md, S6)."""

from dataclasses import dataclass

from appliance.model.staff import StaffMember

IDLE_MILLISECONDS = 12 * 3600 * 1000  # a shift at the door
LONGEST_MILLISECONDS = 7 * 24 * 3600 * 1000
MINUTE_MILLISECONDS = 60_000


@dataclass(frozen=True, slots=True)
class Session:
    """Who is signed in where. `id` names it in lists and opens nothing."""

    id: str
    person: StaffMember
    device: str
    created_at: int
    seen_at: int

    def is_over(self, now: int) -> bool:
        """Whether it was idle for 12 hours or is 7 days old."""
        return (
            now - self.seen_at >= IDLE_MILLISECONDS or now - self.created_at >= LONGEST_MILLISECONDS
        )

    def is_due_for_touch(self, now: int) -> bool:
        """Whether its last use is to be noted again: once a minute is enough."""
        return not 0 <= now - self.seen_at < MINUTE_MILLISECONDS


def sign_in_delay(wrong: int) -> int:
    """Milliseconds to wait after `wrong` wrong passwords in a row: none for the first five.

    Then 30 s, doubled by each further one, 15 minutes at most (docs/security.md, S9).
    """
    if wrong < FREE_TRIES:
        return 0
    doublings = min(wrong - FREE_TRIES, 10)
    return min(_FIRST_DELAY << doublings, _LONGEST_DELAY)


FREE_TRIES = 5
_FIRST_DELAY = 30_000
_LONGEST_DELAY = 15 * 60_000
