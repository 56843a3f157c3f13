"""`GET /metrics`: numbers for Prometheus, for the owner or this machine (docs/security.md, S29).

Nothing is counted while the box works but its requests: who asks has the rows counted.
"""

import asyncio
from hmac import compare_digest
from types import ModuleType

from aiohttp import web

from appliance.box import Box
from appliance.errors import NotFound
from appliance.store.metrics import Counts, Tally, count_for_metrics
from appliance.upkeep.watchdog import Lateness
from web.middleware import REQUESTS, Handler
from web.names.secure import SECURE
from web.portal.guard import find_living_session


class Metrics:
    """One page of numbers, made when it is asked for."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._lateness = Lateness()
        self._tallies = {each.name: Tally() for each in box.environments}

    async def show(self, request: web.Request) -> web.Response:
        """`GET /metrics`; no such page but for the owner, the token's holder and this machine."""
        if not self._may(request):
            raise NotFound
        counts: dict[str, Counts] = {
            each.name: await each.database.read(count_for_metrics, self._tallies[each.name])
            for each in self._box.environments
        }
        page = await asyncio.to_thread(_read_page)
        late = await self._lateness.measure()
        body = page.render(self._box, counts, request.app[REQUESTS].total, late)
        return web.Response(body=body, headers={"Content-Type": page.CONTENT_TYPE})

    def routes(self) -> tuple[tuple[str, str, Handler], ...]:
        """What the application adds."""
        return (("GET", "/metrics", self.show),)

    def _may(self, request: web.Request) -> bool:
        if self._shows_the_token(request) or request.app[SECURE].is_this_machine(request):
            return True
        session = find_living_session(request, self._box.live)
        return session is not None and session.person.may("owner")

    def _shows_the_token(self, request: web.Request) -> bool:
        """Whether this is the Prometheus to which the owner gave `server.metrics_token`."""
        token = self._box.settings.server.metrics_token
        scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
        if not token or scheme.lower() != "bearer":
            return False
        return compare_digest(shown.encode("utf-8", "replace"), token.encode())


def _read_page() -> ModuleType:
    from web import metrics_page  # noqa: PLC0415 - most boxes are never asked for numbers

    return metrics_page
