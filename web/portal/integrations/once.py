"""What happens once: a form that was sent twice, and a secret that is shown a single time.

Both are known to this process alone, for minutes: no secret is in an address, a file or a log.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from aiohttp import web

from appliance.clock import Clock

_KEPT = 500
_SECONDS = 120.0


class Once:
    """Of each session: the forms it sent lately, and the secrets it has not seen yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._done: OrderedDict[tuple[str, str], asyncio.Future[str]] = OrderedDict()
        self._secrets: OrderedDict[tuple[str, str], tuple[float, str]] = OrderedDict()

    async def do(self, session_id: str, token: str, act: Callable[[], Awaitable[str]]) -> str:
        """What `act()` returns; the same, without doing it again, for a form sent twice.

        `token` is the form's own. A form that was refused may be sent again.
        """
        name = (session_id, token)
        if name in self._done and token:
            return await asyncio.shield(self._done[name])
        running = asyncio.ensure_future(act())
        self._done[name] = running
        if len(self._done) > _KEPT:
            self._done.popitem(last=False)
        try:
            return await running
        except BaseException:
            self._done.pop(name, None)
            raise

    def put_secret(
        self, session_id: str, subject: str, secret: str, seconds: float = _SECONDS
    ) -> None:
        """Let that session have the secret of `subject` on the next page about it."""
        self._secrets[session_id, subject] = (self._clock.monotonic() + seconds, secret)
        if len(self._secrets) > _KEPT:
            self._secrets.popitem(last=False)

    def take_secret(self, session_id: str, subject: str) -> str | None:
        """The secret that is to be shown, once; None ever after, and to everybody else."""
        self._forget_old()
        found = self._secrets.pop((session_id, subject), None)
        return None if found is None else found[1]

    def peek_secret(self, session_id: str, subject: str) -> str | None:
        """The same without taking it: while it is kept, it can be shown again to that session."""
        self._forget_old()
        found = self._secrets.get((session_id, subject))
        return None if found is None else found[1]

    def _forget_old(self) -> None:
        now = self._clock.monotonic()
        for name in [name for name, (until, _) in self._secrets.items() if until < now]:
            del self._secrets[name]


class Integrations:
    """What this room remembers while the application runs."""

    def __init__(self, clock: Clock) -> None:
        self.once = Once(clock)


INTEGRATIONS: web.AppKey[Integrations] = web.AppKey("integrations", Integrations)
