"""The dispatcher of one environment: from committed deliveries to recorded attempts.

Nothing polls. Work starts when a commit announces it, when an attempt ends, or when the one
alarm rings that is set for the earliest retry; with nothing pending there is no alarm. A
delivery in flight is still a pending row: after a crash it is sent again with the same id.
"""

import asyncio
import logging
from collections.abc import Sequence

from appliance.accidents import log_accident
from appliance.actions.announce import Announced
from appliance.actions.register_endpoint import EndpointsChanged
from appliance.clock import Clock
from appliance.environment import Environment
from appliance.errors import InvalidWebhookUrl, Unavailable
from appliance.model.delivery import AttemptRecord, Outcome
from appliance.model.endpoint import Endpoint
from appliance.model.venue import Venue
from appliance.store.connection import Reader
from appliance.store.database import ChangedBeside
from appliance.store.deliveries import carry_over_retries
from appliance.store.endpoints import list_active_endpoints
from appliance.store.venue import get_venue
from appliance.webhooks.ladder import DELAYS_MS, longest_wait, next_step
from appliance.webhooks.lane import Lane
from appliance.webhooks.outcomes import strains
from appliance.webhooks.outside import Outside, make_outside
from appliance.webhooks.picking import Pick, pick_all
from appliance.webhooks.receiver import parse_receiver
from appliance.webhooks.recipient import Recipient
from appliance.webhooks.recorder import Recorder
from appliance.webhooks.uptime import Alarm

log = logging.getLogger(__name__)
_UNWRITTEN_MAX = 256


def allows_http(environment: Environment) -> bool:
    """Whether plain http receivers are taken: in test, or when the owner says so."""
    return environment.name == "test" or environment.settings.webhooks.allow_http


class Dispatcher:
    """Sends the deliveries of one environment. `start` it once, `close` it once."""

    def __init__(
        self, environment: Environment, clock: Clock, outside: Outside | None = None
    ) -> None:
        """Trouble when `webhooks.allow_networks` is wrong; `outside` None is the real one."""
        outside = outside or make_outside(environment.settings.webhooks)
        self._environment = environment
        self._database = environment.database
        self._clock = clock
        self._outside = outside
        self._uptime = outside.uptime
        self._recipients: dict[str, Recipient] = {}
        self._lanes: dict[str, Lane] = {}
        self._recorder = Recorder(
            self._database, self._uptime.boot, self._on_recorded, self._on_stuck
        )
        self._attempts: set[asyncio.Task[None]] = set()
        self._holds: set[str] = set()
        self._alarm: Alarm | None = None
        self._alarm_at: int | None = None
        self._pump_is_due = False
        self._running = False

    async def start(self) -> None:
        """Take up what is pending, and listen for more."""
        waits = [longest_wait(attempts) for attempts in range(len(DELAYS_MS) + 1)]
        await self._database.write(
            carry_over_retries, self._uptime.boot, self._uptime.milliseconds(), waits
        )
        self._running = True
        self._database.on_commit(self._on_commit)
        self._reload()
        self._pump_soon()

    async def close(self, deadline: float = 10.0) -> None:
        """Start nothing more, give attempts under way `deadline` seconds, write what is known.

        The rest stays pending and is sent after the next start.
        """
        self._running = False
        self._set_alarm(None)
        if self._attempts:
            await asyncio.wait(self._attempts, timeout=deadline)
        for attempt in self._attempts:
            attempt.cancel()
        await asyncio.gather(*self._attempts, return_exceptions=True)
        await self._recorder.close()
        for recipient in self._recipients.values():
            recipient.close()
        await asyncio.sleep(0)  # sockets are closed in the next turn of the loop

    async def check_url(self, url: object) -> str:
        """`url` when it may be registered here (decisions.md), or InvalidWebhookUrl."""
        await self._outside.check(url, allow_http=allows_http(self._environment))
        return str(url)

    def hold(self, reason: str) -> None:
        """Start no attempt until `release` is called with the same reason."""
        self._holds.add(reason)

    def release(self, reason: str) -> None:
        """Take a hold back; when it was the last, what became due meanwhile is sent."""
        self._holds.discard(reason)
        for recipient in self._recipients.values():
            recipient.lane.fell_behind = True
        self._ring()

    def _on_commit(self, notices: Sequence[object]) -> None:
        if not self._running:
            return
        wake = False
        for notice in notices:
            if isinstance(notice, Announced):
                for endpoint_id in notice.endpoint_ids:
                    recipient = self._recipients.get(endpoint_id)
                    if recipient is not None:
                        recipient.lane.expect_untried()
                        wake = True
            elif isinstance(notice, (EndpointsChanged, ChangedBeside)):
                self._reload()
                wake = True
                for endpoint_id, recipient in self._recipients.items():
                    if isinstance(notice, ChangedBeside) or endpoint_id == notice.endpoint_id:
                        recipient.lane.expect_untried()
                        recipient.lane.more_retries = True
        if wake:
            self._pump_soon()

    def _reload(self) -> None:
        """Follow the rows of `endpoint`. Lanes keep what they know, of those switched off too.

        One may be switched on again before the last attempts at it have ended.
        """
        active = {e.id: e for e in self._database.peek(list_active_endpoints)}
        for endpoint_id in self._recipients.keys() - active.keys():
            self._recipients.pop(endpoint_id).close()
        for endpoint in active.values():
            known = self._recipients.get(endpoint.id)
            if known is None or not known.serves(endpoint):
                self._recipients[endpoint.id] = self._make_recipient(endpoint)
                if known is not None:
                    known.close()

    def _make_recipient(self, endpoint: Endpoint) -> Recipient:
        outside, environment = self._outside, self._environment
        try:
            receiver = parse_receiver(endpoint.url, allow_http=allows_http(environment))
        except InvalidWebhookUrl as refusal:
            log.warning("webhook endpoint %s is blocked: %s", endpoint.id, refusal)
            client = None
        else:
            client = outside.make_client(endpoint, receiver)
        lane = self._lanes.setdefault(endpoint.id, Lane(endpoint.id))
        return Recipient(endpoint, lane, client, environment.keyring, self._clock)

    def _pump_soon(self) -> None:
        """Pump once in this turn of the loop, after those who wait for a commit went on."""
        if not self._pump_is_due and self._running:
            self._pump_is_due = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pump_is_due = False
        if self._holds or not self._running or self._recorder.waiting >= _UNWRITTEN_MAX:
            return
        lanes = [recipient.lane for recipient in self._recipients.values()]
        if not any(lane.wants for lane in lanes):
            return
        picks: list[Pick] = []
        try:
            self._database.peek(pick_all, lanes, self._uptime.milliseconds(), _VenueOnce(), picks)
        except Unavailable:
            log.warning("deliveries cannot be read: they wait for the next commit")
        for pick in picks:
            self._launch(pick)
        self._arm()

    def _launch(self, pick: Pick) -> None:
        recipient = self._recipients[pick.lane.endpoint_id]
        if pick.body is None:
            self._conclude(pick, None, self._clock.now(), 0)
            return
        attempt = asyncio.create_task(self._attempt(recipient, pick, pick.body))
        self._attempts.add(attempt)
        attempt.add_done_callback(self._attempts.discard)

    async def _attempt(self, recipient: Recipient, pick: Pick, body: bytes) -> None:
        started_at, started = self._clock.now(), self._clock.monotonic()
        try:
            outcome = await recipient.post(pick.delivery, body)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
            log_accident(f"delivery {pick.delivery.id}", error)
            outcome = Outcome("done", "failed")
        duration_ms = round((self._clock.monotonic() - started) * 1000)
        self._conclude(pick, outcome, started_at, duration_ms)

    def _conclude(
        self, pick: Pick, outcome: Outcome | None, started_at: int, duration_ms: int
    ) -> None:
        """What an attempt led to: its lane learns, and the record is on its way."""
        lane, delivery = pick.lane, pick.delivery
        lane.end(delivery, retry=pick.retry)
        state, attempts, wait_ms = "cancelled", delivery.attempts, 0
        if outcome is not None:
            self._notice_health(lane, outcome)
            lane.adapt(delivered=outcome.delivered, strained=strains(outcome))
            step = next_step(
                delivery.attempts,
                delivered=outcome.delivered,
                charged=outcome.charged,
                draw=self._outside.draw,
            )
            state, attempts, wait_ms = step.state, step.attempts, step.wait_ms
        waits = state == "pending"
        self._recorder.add(
            AttemptRecord(
                delivery_seq=delivery.seq,
                endpoint_id=lane.endpoint_id,
                started_at=started_at,
                duration_ms=duration_ms,
                outcome=outcome,
                state=state,
                attempts=attempts,
                due_at=self._clock.now() + wait_ms,
                due_uptime=self._uptime.milliseconds() + wait_ms if waits else None,
                replays=delivery.replays,
            )
        )
        self._pump_soon()

    def _notice_health(self, lane: Lane, outcome: Outcome) -> None:
        """Log the first failure of a streak and its end, not each attempt."""
        if outcome.delivered and lane.failing:
            log.info("webhook endpoint %s answers again", lane.endpoint_id)
            lane.fell_behind = True
        elif not outcome.delivered and not lane.failing:
            log.warning("webhook endpoint %s fails: %s", lane.endpoint_id, outcome.code)
        lane.failing = not outcome.delivered

    def _on_recorded(self, records: Sequence[AttemptRecord]) -> None:
        for record in records:
            lane = self._lanes[record.endpoint_id]
            lane.finish(record.delivery_seq)
            if record.state == "pending" and record.due_uptime is not None:
                lane.expect_retry(record.due_uptime)
        self._pump_soon()
        self._arm()

    def _on_stuck(self, stuck: bool) -> None:  # noqa: FBT001 - it is told one fact
        if stuck:
            self.hold("unwritten outcomes")
        else:
            self.release("unwritten outcomes")

    def _arm(self) -> None:
        """Set the alarm for the earliest retry of all lanes."""
        retries = [r.lane.next_retry for r in self._recipients.values()]
        self._set_alarm(min((at for at in retries if at is not None), default=None))

    def _set_alarm(self, at: int | None) -> None:
        if at == self._alarm_at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = at
        self._alarm = None if at is None else self._uptime.call_at(at, self._ring)

    def _ring(self) -> None:
        """The time of a retry has come, or may have come while sending was held."""
        self._set_alarm(None)
        if not self._running:
            return
        now = self._uptime.milliseconds()
        for recipient in self._recipients.values():
            recipient.lane.due(now)
        self._pump_soon()
        self._arm()


class _VenueOnce:
    """The venue, read at most once for a whole round of picks."""

    def __init__(self) -> None:
        self._venue: Venue | None = None

    def __call__(self, reader: Reader) -> Venue:
        if self._venue is None:
            self._venue = get_venue(reader)
        return self._venue
