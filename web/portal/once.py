"""What happens once: a form that was sent twice, and a secret that is shown a single time.

Both are known to this process alone, for minutes: no secret is in an address, a file or a log.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from aiohttp import web

from appliance.clock import Clock
from web.portal.context import SESSION

_KEPT = 500
_SECONDS = 120.0
_REFUSED = 400
_Sent = tuple[int, dict[str, str], bytes]


class Once:
    """Of each session: the forms it sent lately, and the secrets it has not seen yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._done: OrderedDict[tuple[str, str], asyncio.Future[web.StreamResponse]] = OrderedDict()
        self._answers: OrderedDict[tuple[str, str], tuple[float, _Sent]] = OrderedDict()
        self._secrets: OrderedDict[tuple[str, str], tuple[float, str]] = OrderedDict()

    async def answer(
        self,
        session_id: str,
        token: str,
        act: Callable[[], Awaitable[web.StreamResponse]],
        show: Callable[[], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """The answer of `act()`; the same, without doing it again, for a form sent twice.

        `token` is the form's own. A form that was refused may be sent again. Minutes after it was
        done, a form that comes again gets what `show()` shows.
        """
        name = (session_id, token)
        if name not in self._done:
            return await self._do(name, act)
        await asyncio.wait({self._done[name]})
        if name not in self._done:  # it was refused
            return await self.answer(session_id, token, act, show)
        self._forget_old()
        if name in self._answers:
            status, headers, body = self._answers[name][1]
            return web.Response(status=status, headers=headers, body=body)
        return await show()

    def put_secret(self, request: web.Request, subject: str, secret: str) -> None:
        """Let this session see the secret of `subject` on the next page about it."""
        self._secrets[request[SESSION].id, subject] = (self._clock.monotonic() + _SECONDS, secret)
        if len(self._secrets) > _KEPT:
            self._secrets.popitem(last=False)

    def take_secret(self, request: web.Request, subject: str) -> str | None:
        """The secret that is to be shown, once; None ever after, and to everybody else."""
        self._forget_old()
        found = self._secrets.pop((request[SESSION].id, subject), None)
        return None if found is None else found[1]

    async def _do(
        self, name: tuple[str, str], act: Callable[[], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self._forget_old()
        running = self._done[name] = asyncio.ensure_future(act())
        if len(self._done) > _KEPT:
            oldest, _ = self._done.popitem(last=False)
            self._answers.pop(oldest, None)
        try:
            response = await running
        except BaseException:
            self._done.pop(name, None)
            raise
        if response.status >= _REFUSED or not isinstance(response, web.Response):
            self._done.pop(name, None)
        else:
            body = response.body if isinstance(response.body, bytes) else b""
            sent = (response.status, dict(response.headers), body)
            self._answers[name] = (self._clock.monotonic() + _SECONDS, sent)
        return response

    def _forget_old(self) -> None:
        now = self._clock.monotonic()
        kept: OrderedDict[tuple[str, str], tuple[float, object]]
        for kept in (self._answers, self._secrets):  # type: ignore[assignment]
            for name in [name for name, (until, _) in kept.items() if until < now]:
                del kept[name]


ONCE: web.AppKey[Once] = web.AppKey("once", Once)
