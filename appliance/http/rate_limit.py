"""How often a caller may do something: a key, an address, a terminal (interface, section 8)."""

from collections import OrderedDict, deque

from appliance.clock import Clock
from appliance.core.errors import RateLimited

_WINDOW = 60.0
_MOST_CALLERS = 10_000


class RateLimit:
    """At most `limit` granted calls in any `seconds` for each caller; refused ones are free."""

    def __init__(
        self,
        clock: Clock,
        limit: int,
        seconds: float = _WINDOW,
        refusal: type[RateLimited] = RateLimited,
    ) -> None:
        self._clock = clock
        self._limit = limit
        self._seconds = seconds
        self._refusal = refusal
        self._calls: OrderedDict[str, deque[float]] = OrderedDict()

    def spend(self, caller: str) -> None:
        """Count a call of `caller`, or raise the refusal."""
        now = self._clock.monotonic()
        calls = self._calls.setdefault(caller, deque())
        self._calls.move_to_end(caller)
        if len(self._calls) > _MOST_CALLERS:  # the one that called longest ago
            self._calls.popitem(last=False)
        oldest = now - self._seconds
        while calls and calls[0] <= oldest:
            calls.popleft()
        if len(calls) >= self._limit:
            raise self._refusal
        calls.append(now)

    def give_back(self, caller: str) -> None:
        """The latest call of `caller` does not count."""
        if self._calls.get(caller):
            self._calls[caller].pop()
