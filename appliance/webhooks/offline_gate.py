"""The offline gate: an offline box counts no attempts (docs/decisions/webhooks.md).

What tells that it is the box: no route, or no answer from name servers, while nothing outside
was reached for a minute and a probe fails too. A probe looks up and connects to the receivers
themselves and sends nothing; nobody else ever hears of the box.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Iterable

from appliance.accidents import log_accident
from appliance.model.delivery import Outcome
from appliance.webhooks.network import Network
from appliance.webhooks.outcomes import BOX_OFFLINE, CONN_TIMEOUT, DNS_TEMP, NO_ROUTE
from appliance.webhooks.recipient import Recipient
from appliance.webhooks.uptime import Alarm, Uptime

QUIET_MS = 60_000
FIRST_PROBE_MS, LONGEST_PROBE_MS = 5_000, 60_000
_AFTER_NEWS_MS = 200  # a network comes up with many messages
_SOON_AFTER_NEWS_MS = 1_000

_EVIDENCE = (NO_ROUTE, DNS_TEMP)

# Called with the endpoints whose lanes are to be held, or released.
Lanes = Callable[[Collection[str]], None]


class OfflineGate:
    """Says whose fault a failure is, parks lanes that lead nowhere, and knows when to go on.

    Nothing parked: no timer, no socket.
    """

    def __init__(
        self,
        network: Network,
        uptime: Uptime,
        recipients: Callable[[], Iterable[Recipient]],
        park: Lanes,
        unpark: Lanes,
    ) -> None:
        self._network = network
        self._uptime = uptime
        self._recipients = recipients
        self._park = park
        self._unpark = unpark
        self._parked: set[str] = set()
        self._last_success: int | None = None
        self._last_evidence: int | None = None
        self._verdict: asyncio.Task[bool] | None = None
        self._probe: asyncio.Task[None] | None = None
        self._alarm: Alarm | None = None
        self._delay = FIRST_PROBE_MS
        self._stop_watching: Callable[[], None] | None = None

    @property
    def parked(self) -> frozenset[str]:
        """The endpoints whose lanes are parked."""
        return frozenset(self._parked)

    async def judge(self, recipient: Recipient, outcome: Outcome) -> Outcome:
        """`outcome`, or `box_offline` instead when the box had no way to this receiver."""
        if recipient.is_local:
            if outcome.code != NO_ROUTE or not await self._leads_nowhere(recipient):
                return outcome
        elif not (self._suspects(outcome) and await self._is_offline()):
            return outcome
        self._hold([recipient])
        return dataclasses.replace(outcome, code=BOX_OFFLINE, charged=False)

    def _suspects(self, outcome: Outcome) -> bool:
        """Whether this failure of a receiver outside may be our own."""
        now = self._uptime.milliseconds()
        if outcome.http_status is not None:
            self._last_success, self._last_evidence = now, None
            return False
        recently = self._last_evidence is not None and now - self._last_evidence <= QUIET_MS
        if outcome.code in _EVIDENCE:
            self._last_evidence = now
        elif outcome.code != CONN_TIMEOUT or not (recently or self._has_no_way_out()):
            return False
        certain = outcome.code == NO_ROUTE or self._has_no_way_out()
        quiet = self._last_success is None or now - self._last_success >= QUIET_MS
        return certain or quiet

    def _has_no_way_out(self) -> bool:
        return not self._network.has_way_out()

    async def _is_offline(self) -> bool:
        """Whether a probe of everybody outside fails; one probe for all who ask meanwhile."""
        if self._verdict is None or self._verdict.done():
            self._verdict = asyncio.create_task(self._nobody_outside_is_there())
        offline = await asyncio.shield(self._verdict)
        if offline:
            self._hold([r for r in self._recipients() if not r.is_local])
        return offline

    async def _nobody_outside_is_there(self) -> bool:
        outside = [r for r in self._recipients() if not r.is_local]
        probes = [asyncio.create_task(self._leads_nowhere(r)) for r in outside]
        try:
            for probe in asyncio.as_completed(probes):
                if not await probe:
                    return False
        finally:
            for unfinished in probes:
                unfinished.cancel()
            await asyncio.gather(*probes, return_exceptions=True)
        return True

    @staticmethod
    async def _leads_nowhere(recipient: Recipient) -> bool:
        """Whether the way to a receiver ends at the box. Refused, or too late, it does not."""
        try:
            return await recipient.reach() in _EVIDENCE
        except Exception as error:  # noqa: BLE001 - whatever it was, it is no proof
            log_accident(f"looking for webhook endpoint {recipient.endpoint.id}", error)
            return False

    def _hold(self, recipients: Iterable[Recipient]) -> None:
        new = {r.endpoint.id for r in recipients} - self._parked
        if not new:
            return
        self._parked |= new
        self._park(new)
        if self._stop_watching is None:
            self._stop_watching = self._network.watch(self._on_news)
            self._delay = 2 * FIRST_PROBE_MS
            self._set_alarm(FIRST_PROBE_MS)

    def _on_news(self) -> None:
        """Links or routes have changed: look at once, and again soon."""
        if self._parked:
            self._delay = _SOON_AFTER_NEWS_MS
            self._set_alarm(_AFTER_NEWS_MS)

    def _set_alarm(self, wait: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._uptime.call_at(self._uptime.milliseconds() + wait, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._probe is not None:
            self._probe.cancel()
        self._probe = asyncio.create_task(self._look(), name="offline probe")

    async def _look(self) -> None:
        parked = [r for r in self._recipients() if r.endpoint.id in self._parked]
        found: set[str] = self._parked - {r.endpoint.id for r in parked}
        for local in [r for r in parked if r.is_local]:
            if not await self._leads_nowhere(local):
                found.add(local.endpoint.id)
        outside = {r.endpoint.id for r in parked if not r.is_local}
        if outside and not await self._nobody_outside_is_there():
            found |= outside
            self._last_evidence = None
        self._release(found)
        if self._parked:
            self._set_alarm(self._delay)
            self._delay = min(self._delay * 2, LONGEST_PROBE_MS)

    def _release(self, endpoint_ids: set[str]) -> None:
        self._parked -= endpoint_ids
        if not self._parked:
            self._rest()
        if endpoint_ids:
            self._unpark(endpoint_ids)

    def _rest(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None

    async def close(self) -> None:
        """Stop probing and listening. What was parked stays pending."""
        self._parked.clear()
        self._rest()
        tasks = [task for task in (self._probe, self._verdict) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
