"""Rate limits per caller: an API key, an address or a terminal (interface, section 8)."""

from collections import OrderedDict, deque
from math import ceil

from appliance.clock import Clock
from appliance.core.errors import RateLimited

_WINDOW = 60.0
_CALLERS_MAX = 10_000


class RateLimit:
    """Allows each caller at most `limit` calls in any period of `seconds`.

    Refused calls do not count. `refusal` is the type of error that they raise.
    """

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
        """Count a call by `caller`. Raises the error `refusal` if the caller's limit is reached."""
        now = self._clock.monotonic()
        calls = self._calls.setdefault(caller, deque())
        self._calls.move_to_end(caller)
        if len(self._calls) > _CALLERS_MAX:  # drop the caller that has been idle longest
            self._calls.popitem(last=False)
        oldest = now - self._seconds
        while calls and calls[0] <= oldest:
            calls.popleft()
        if len(calls) >= self._limit:
            raise self._refusal
        calls.append(now)

    def headers(self, caller: str, name: str) -> dict[str, str]:
        """Return the headers `RateLimit-Policy` and `RateLimit` for the policy `name`.

        `r` is the number of calls left, `t` the seconds until the oldest call stops counting
        (draft-ietf-httpapi-ratelimit-headers).
        """
        calls, now = self._calls.get(caller) or (), self._clock.monotonic()
        left = ceil(calls[0] + self._seconds - now) if calls else 0
        return {
            "RateLimit-Policy": f'"{name}";q={self._limit};w={self._seconds:.0f}',
            "RateLimit": f'"{name}";r={max(self._limit - len(calls), 0)};t={max(left, 0)}',
        }

    def give_back(self, caller: str) -> None:
        """Remove the latest call by `caller` from the count."""
        if self._calls.get(caller):
            self._calls[caller].pop()
