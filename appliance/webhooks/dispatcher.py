"""The dispatcher of one environment: from committed deliveries to recorded attempts.

Nothing polls. Work starts when a commit announces it, when an attempt ends, or when the one
alarm rings that is set for the earliest retry; with nothing pending there is no alarm. A
delivery in flight is still a pending row: after a crash it is sent again with the same id.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence

from appliance.accidents import log_accident
from appliance.actions.announce import Announced
from appliance.actions.register_endpoint import EndpointsChanged
from appliance.clock import Clock
from appliance.environment import Environment
from appliance.errors import InvalidWebhookUrl, Unavailable
from appliance.model.delivery import AttemptRecord
from appliance.model.endpoint import Endpoint
from appliance.store.database import ChangedBeside
from appliance.store.endpoints import list_active_endpoints
from appliance.webhooks.attempt import Attempts
from appliance.webhooks.clock_gate import ClockGate
from appliance.webhooks.conditions import CLOCK_HELD, OFFLINE, UNWRITTEN, Conditions
from appliance.webhooks.health import notice_blocked, notice_health
from appliance.webhooks.lane import Lane
from appliance.webhooks.offline_gate import OfflineGate
from appliance.webhooks.outcomes import strains
from appliance.webhooks.outside import Outside, make_outside
from appliance.webhooks.picking import Pick, pick_all
from appliance.webhooks.receiver import parse_receiver
from appliance.webhooks.recipient import Recipient
from appliance.webhooks.recorder import Recorder
from appliance.webhooks.uptime import Alarm

log = logging.getLogger(__name__)
_UNWRITTEN_MAX = 256
_AGAIN_MS = 15_000


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
        self._outside = outside
        self._uptime = outside.uptime
        self._recipients: dict[str, Recipient] = {}
        self._lanes: dict[str, Lane] = {}
        self._conditions = Conditions(self._database)
        grace_ms = environment.settings.webhooks.clock_grace_minutes * 60_000
        self.clock_gate = ClockGate(
            self._database, clock, outside, grace_ms, self._conditions, self._on_trusted
        )
        self._offline_gate = OfflineGate(
            outside.network, outside.uptime, self._recipients.values, self._park, self._unpark
        )
        self._maker = Attempts(clock, outside.uptime, outside.draw, self._offline_gate)
        self._recorder = Recorder(
            self._database,
            self._uptime.boot,
            self.clock_gate.mark_to_write,
            self._on_recorded,
            self._on_stuck,
        )
        self._attempts: set[asyncio.Task[None]] = set()
        self._holds: set[str] = set()
        self._alarm: Alarm | None = None
        self._alarm_at: int | None = None
        self._pump_is_due = False
        self._running = False

    async def start(self) -> None:
        """Take up what is pending, and listen for more."""
        self._conditions.start()
        await self.clock_gate.start()
        self._running = True
        self.clock_gate.watch(self._ring)  # retries that fell due while the machine slept
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
        await self._offline_gate.close()
        await self.clock_gate.close()
        await self._conditions.close()
        for recipient in self._recipients.values():
            recipient.close()
        await asyncio.sleep(0)  # sockets are closed in the next turn of the loop

    async def check_url(self, url: object) -> str:
        """`url` when it may be registered here, or InvalidWebhookUrl."""
        await self._outside.check(url, allow_http=allows_http(self._environment))
        return str(url)

    def is_lent(self, url: str) -> bool:
        """Whether `url` is that of a receiver inside this process, which is lent for a while."""
        inside = self._outside.inside
        return inside is not None and inside.names(url)

    def hold(self, reason: str, endpoint_ids: Collection[str] | None = None) -> None:
        """Start no attempt, or none at these, until `release` is called with the same reason."""
        if endpoint_ids is None:
            self._holds.add(reason)
        for endpoint_id in endpoint_ids or ():
            self._lanes[endpoint_id].held.add(reason)

    def release(self, reason: str, endpoint_ids: Collection[str] | None = None) -> None:
        """Take a hold back; when it was the last, what became due meanwhile is sent."""
        if endpoint_ids is None:
            self._holds.discard(reason)
        for endpoint_id in self._lanes if endpoint_ids is None else endpoint_ids:
            self._lanes[endpoint_id].held.discard(reason)
            self._lanes[endpoint_id].fell_behind = True
        self._ring()

    def _on_trusted(self) -> None:
        self.release(CLOCK_HELD)

    def _park(self, endpoint_ids: Collection[str]) -> None:
        self.hold(OFFLINE, endpoint_ids)
        self._conditions.begin(OFFLINE, "the box is offline: webhooks wait, at nobody's expense")

    def _unpark(self, endpoint_ids: Collection[str]) -> None:
        if not self._offline_gate.parked:
            self._conditions.end(OFFLINE, "the box is online again: webhooks go out")
        self.release(OFFLINE, endpoint_ids)

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
                wake = self._follow(notice) or wake
        if wake:
            self._pump_soon()

    def _follow(self, notice: EndpointsChanged | ChangedBeside) -> bool:
        """Whether what has changed could be read; else it is looked at in a while."""
        try:
            self._reload()
        except Unavailable:
            at = self._uptime.milliseconds() + _AGAIN_MS
            self._uptime.call_at(at, lambda: self._on_commit([ChangedBeside()]))
            return False
        for endpoint_id, recipient in self._recipients.items():
            if isinstance(notice, ChangedBeside) or endpoint_id == notice.endpoint_id:
                recipient.lane.expect_untried()
                recipient.lane.more_retries = True
        return True

    def _reload(self) -> None:
        """Follow the rows of `endpoint`. Lanes keep what they know, of those switched off too.

        One may be switched on again before the last attempts at it have ended.
        """
        active = {e.id: e for e in self._database.peek(list_active_endpoints)}
        for endpoint_id in self._recipients.keys() - active.keys():
            self._recipients.pop(endpoint_id).close()
        self._conditions.keep_only(set(active))
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
            notice_blocked(self._conditions, endpoint.id, str(refusal))
            client = None
        else:
            client = outside.make_client(endpoint, receiver)
        lane = self._lanes.setdefault(endpoint.id, Lane(endpoint.id))
        return Recipient(endpoint, lane, client, environment.keyring)

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
        if not any(lane.wants for lane in lanes) or (now := self.clock_gate.time_to_sign()) is None:
            return
        picks: list[Pick] = []
        try:
            self._database.peek(pick_all, lanes, self._uptime.milliseconds(), picks)
        except Exception as error:  # noqa: BLE001 - what could be read is sent all the same
            log_accident("reading deliveries", error)
            self._read_later(lanes)
        for pick in picks:
            self._launch(pick, now)
        self._arm()

    def _read_later(self, lanes: Sequence[Lane]) -> None:
        """Some rows could not be read: all that is not under way is looked for in a while."""
        for lane in lanes:
            lane.read_anew()
            lane.expect_retry(self._uptime.milliseconds() + _AGAIN_MS)

    def _launch(self, pick: Pick, now: int) -> None:
        recipient = self._recipients[pick.lane.endpoint_id]
        if pick.body is None:
            self._conclude(pick, self._maker.leave_out(pick))
            return
        attempt = asyncio.create_task(self._attempt(recipient, pick, pick.body, now))
        self._attempts.add(attempt)
        attempt.add_done_callback(self._attempts.discard)

    async def _attempt(self, recipient: Recipient, pick: Pick, body: bytes, now: int) -> None:
        self._conclude(pick, await self._maker.make(recipient, pick, body, now))

    def _conclude(self, pick: Pick, record: AttemptRecord) -> None:
        """What an attempt led to: its lane learns, and the record is on its way."""
        lane, outcome = pick.lane, record.outcome
        lane.end(pick.delivery, retry=pick.retry)
        if outcome is not None:
            if outcome.delivered and lane.failing:
                lane.fell_behind = True
            if lane.endpoint_id in self._recipients:  # else it was switched off meanwhile
                notice_health(self._conditions, lane, record)
            lane.adapt(delivered=outcome.delivered, strained=strains(outcome))
        self._recorder.add(record)
        self._pump_soon()

    def _on_recorded(self, records: Sequence[AttemptRecord]) -> None:
        for record in records:
            lane = self._lanes[record.endpoint_id]
            lane.finish(record.delivery_seq)
            if record.state == "pending" and record.due_uptime is not None:
                lane.expect_retry(record.due_uptime)
                if not (record.outcome is None or record.outcome.charged):
                    lane.due(self._uptime.milliseconds())
        self._pump_soon()
        self._arm()

    def _on_stuck(self, stuck: bool) -> None:  # noqa: FBT001 - it is told one fact
        if stuck:
            self._conditions.begin(UNWRITTEN, "outcomes of webhooks cannot be written: they wait")
            self.hold(UNWRITTEN)
        else:
            self._conditions.end(UNWRITTEN, "outcomes of webhooks are written again")
            self.release(UNWRITTEN)

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
