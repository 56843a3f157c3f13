"""The dispatcher of one environment: from committed deliveries to recorded attempts.

Nothing polls. Work starts when a commit announces it, when an attempt ends, or when the one
alarm rings that is set for the earliest retry; with nothing pending there is no alarm. A
delivery in flight is still a pending row: after a crash it is sent again with the same id.
"""

import asyncio
import dataclasses
import hashlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from appliance.alerts import CLOCK_HELD, OFFLINE, UNWRITTEN, Alerts, notice_blocked
from appliance.clock import Clock
from appliance.clock_signals import Alarm
from appliance.core.errors import InvalidWebhookUrl, Unavailable, log_exception
from appliance.database.connection import Reader
from appliance.database.database import ChangedBeside
from appliance.environment import Environment
from appliance.outbox import Announced
from appliance.reservations.rows import find_reservation
from appliance.venue.model import Venue
from appliance.venue.rows import get_venue
from appliance.webhooks.client import BOX_OFFLINE, DONE, GUARD, SENT, Client
from appliance.webhooks.deliveries import AttemptRecord, DueDelivery, Outcome
from appliance.webhooks.dependencies import Dependencies, make_dependencies
from appliance.webhooks.endpoint_queue import EndpointQueue
from appliance.webhooks.endpoints import Endpoint, EndpointsChanged, list_active_endpoints
from appliance.webhooks.gates import AGAIN_MS, ClockGate, OfflineGate
from appliance.webhooks.payload import event_body
from appliance.webhooks.recorder import Recorder, note_health
from appliance.webhooks.retry_policy import Step, next_step
from appliance.webhooks.url_policy import parse_target_url

IN_FLIGHT_MAX = 32
_UNWRITTEN_MAX = 256
_AGAIN_MS = 15_000


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt that starts now. `body` None: its reservation is no more."""

    queue: EndpointQueue
    delivery: DueDelivery
    body: bytes | None
    started_at: int


def allows_http(environment: Environment) -> bool:
    """Whether plain http receivers are taken: in test, or when the owner says so."""
    return environment.name == "test" or environment.settings.webhooks.allow_http


class Dispatcher:
    """Sends the deliveries of one environment. `start` it once, `close` it once."""

    def __init__(
        self, environment: Environment, clock: Clock, outside: Dependencies | None = None
    ) -> None:
        """OperatorError when `webhooks.allow_networks` is wrong; `outside` None is the real one."""
        outside = outside or make_dependencies(environment.settings.webhooks)
        self._environment = environment
        self._database = environment.database
        self._clock = clock
        self._outside = outside
        self._uptime = outside.uptime
        self._queues: dict[str, EndpointQueue] = {}
        self._conditions = Alerts(self._database)
        grace_ms = environment.settings.webhooks.clock_grace_minutes * 60_000
        self.clock_gate = ClockGate(
            self._database, clock, outside, grace_ms, self._conditions, self._on_trusted
        )
        self._offline_gate = OfflineGate(outside.network, outside.uptime)
        self._recorder = Recorder(
            self._database,
            self._uptime.boot,
            self.clock_gate.mark_to_write,
            self._on_recorded,
            self._on_stuck,
        )
        self._tasks: set[asyncio.Task[None]] = set()
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
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=deadline)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._recorder.close()
        await self.clock_gate.close()
        await self._conditions.close()
        for queue in self._queues.values():
            self._close(queue.close())
        await asyncio.gather(*self._tasks)

    async def check_url(self, url: object) -> str:
        """`url` when it may be registered here, or InvalidWebhookUrl."""
        await self._outside.check(url, allow_http=allows_http(self._environment))
        return str(url)

    def is_lent(self, url: str) -> bool:
        """Whether `url` is that of a receiver inside this process, which is lent for a while."""
        inside = self._outside.inside
        return inside is not None and inside.names(url)

    def hold(self, reason: str) -> None:
        """Start no attempt until `release` is called with the same reason."""
        self._holds.add(reason)

    def release(self, reason: str) -> None:
        """Take a hold back; when it was the last, what became due meanwhile is sent."""
        self._holds.discard(reason)
        for queue in self._queues.values():
            queue.fall_behind()
        self._pump_soon()

    def _on_trusted(self) -> None:
        self.release(CLOCK_HELD)

    def _on_commit(self, notices: Sequence[object]) -> None:
        if not self._running:
            return
        for notice in notices:
            if isinstance(notice, Announced):
                for endpoint_id in notice.endpoint_ids:
                    if endpoint_id in self._queues:
                        self._queues[endpoint_id].expect()
                        self._pump_soon()
            elif isinstance(notice, (EndpointsChanged, ChangedBeside)):
                self._follow(notice)

    def _follow(self, notice: EndpointsChanged | ChangedBeside) -> None:
        """Read the endpoints anew; where they cannot be read, in a while."""
        try:
            self._reload()
        except Unavailable:
            at = self._uptime.milliseconds() + _AGAIN_MS
            self._uptime.call_at(at, lambda: self._on_commit([ChangedBeside()]))
            return
        for endpoint_id, queue in self._queues.items():
            if isinstance(notice, ChangedBeside) or endpoint_id == notice.endpoint_id:
                queue.expect(retries=True)
        self._pump_soon()

    def _reload(self) -> None:
        """Follow the rows of `endpoint`. Queues keep what they know, of those switched off too.

        One may be switched on again before the last attempts at it have ended.
        """
        active = {e.id: e for e in self._database.peek(list_active_endpoints)}
        for endpoint_id in self._queues.keys() - active.keys():
            self._close(self._queues[endpoint_id].close())
        self._come_back([])
        self._conditions.keep_only(set(active))
        for endpoint in active.values():
            queue = self._queues.setdefault(endpoint.id, EndpointQueue(endpoint.id))
            if queue.is_as(endpoint):
                queue.endpoint = endpoint
            else:
                self._close(queue.client)
                queue.follow(endpoint, self._make_client(endpoint), self._environment.keyring)

    def _make_client(self, endpoint: Endpoint) -> Client | None:
        try:
            http = allows_http(self._environment)
            receiver = parse_target_url(endpoint.url, allow_http=http)
        except InvalidWebhookUrl as refusal:
            notice_blocked(self._conditions, endpoint.id, str(refusal))
            return None
        return self._outside.make_client(endpoint, receiver)

    def _close(self, client: Client | None) -> None:
        if client is not None:
            self._spawn(client.close())

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _pump_soon(self) -> None:
        """Pump once in this turn of the loop, after those who wait for a commit went on."""
        if not self._pump_is_due and self._running:
            self._pump_is_due = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Start what is due, and set the alarm for what is due next."""
        self._pump_is_due = False
        if self._holds or not self._running or self._recorder.waiting >= _UNWRITTEN_MAX:
            return
        uptime = self._uptime.milliseconds()
        waiting = [queue for queue in self._queues.values() if queue.wants(uptime)]
        if waiting and (now := self.clock_gate.time_to_sign()) is not None:
            for queue in sorted(waiting, key=lambda queue: queue.in_flight):
                attempts: list[_Attempt] = []
                try:
                    self._database.peek(self._choose, queue, uptime, now, attempts)
                except Exception as error:  # noqa: BLE001 - what could be read is sent all the same
                    log_exception("reading deliveries", error)
                    queue.pause(uptime + _AGAIN_MS)
                for attempt in attempts:
                    self._launch(attempt)
        times = [queue.wakes_at(uptime) for queue in self._queues.values()]
        self._set_alarm(min((at for at in times if at is not None), default=None))

    def _choose(
        self, reader: Reader, queue: EndpointQueue, uptime: int, now: int, attempts: list[_Attempt]
    ) -> None:
        """Append to `attempts` what starts now; each is begun in its queue, even if this raises."""
        places = IN_FLIGHT_MAX - sum(queue.in_flight for queue in self._queues.values())
        venue: Venue | None = None  # read once, where anything starts
        endpoint = queue.endpoint
        assert endpoint is not None  # noqa: S101 - a queue without one wants nothing
        for delivery in queue.choose(reader, uptime, min(places, queue.room)):
            venue = venue or get_venue(reader)
            body = _render(reader, delivery, venue, endpoint)
            queue.begin(delivery)
            attempts.append(_Attempt(queue, delivery, body, now))

    def _launch(self, attempt: _Attempt) -> None:
        if attempt.body is None:
            attempt.queue.end(None)
            self._recorder.add(self._record(attempt, None, None, 0))
        else:
            self._spawn(self._make(attempt, attempt.body))

    async def _make(self, attempt: _Attempt, body: bytes) -> None:
        """Send `body`, signed with the time of the start; every failure is an outcome.

        The wait until the next attempt counts from this one's end.
        """
        queue, delivery = attempt.queue, attempt.delivery
        client, started, request = queue.client, self._clock.monotonic(), None
        outcome = Outcome(GUARD, "blocked")
        try:
            request = queue.request(delivery, body, attempt.started_at)
            if client is not None:
                outcome = await client.post(request)
        except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
            log_exception(f"delivery {delivery.id}", error)
            outcome = Outcome(DONE, "failed")
        duration_ms = round((self._clock.monotonic() - started) * 1000)
        was_offline = queue.offline
        outcome = self._judge(queue, client, outcome)
        queue.end(outcome)
        if was_offline and outcome.code == BOX_OFFLINE:  # of an outage the beginning is logged
            queue.finish(delivery.seq)
        else:
            record = self._record(attempt, body, outcome, duration_ms)
            if outcome.phase in SENT and not outcome.delivered and client and request:
                record = dataclasses.replace(record, request=client.text(request))
            if queue.endpoint is not None:  # else it was switched off meanwhile
                note_health(self._conditions, record)
            self._recorder.add(record)
        self._pump_soon()

    def _judge(self, queue: EndpointQueue, client: Client | None, outcome: Outcome) -> Outcome:
        """`outcome`, or `box_offline` instead when the box had no way to this receiver."""
        if client is None:
            return outcome
        if outcome.http_status is not None:
            if not client.is_local:
                self._offline_gate.note_success()
            if queue.offline:
                self._come_back([queue] if client.is_local else self._outside_queues())
            return outcome
        host, outside = client.receiver.host, self._outside_queues()
        hosts = {each.client.receiver.host for each in outside if each.client is not None}
        if not self._offline_gate.is_to_blame(outcome, host, hosts, is_local=client.is_local):
            if queue.offline:
                self._come_back([queue])
            return outcome
        if queue.endpoint is not None:  # else nobody would notice when it is over
            self._conditions.begin(
                OFFLINE, "the box is offline: webhooks wait, at nobody's expense"
            )
        for each in [queue] if client.is_local else outside:
            if each is queue or not each.offline:
                each.offline = True
                each.pause(self._uptime.milliseconds() + AGAIN_MS)
        return dataclasses.replace(outcome, code=BOX_OFFLINE, charged=False)

    def _outside_queues(self) -> list[EndpointQueue]:
        return [each for each in self._queues.values() if each.endpoint and not each.is_local]

    def _come_back(self, queues: Sequence[EndpointQueue]) -> None:
        for queue in queues:
            queue.come_back()
        if not any(queue.offline for queue in self._queues.values()):
            self._conditions.end(OFFLINE, "the box is online again: webhooks go out")

    def _record(
        self, attempt: _Attempt, body: bytes | None, outcome: Outcome | None, duration_ms: int
    ) -> AttemptRecord:
        """What came of an attempt; without an outcome its delivery is cancelled unsent."""
        delivery, now = attempt.delivery, self._clock.now()
        step = Step("cancelled", delivery.attempts)
        if outcome is not None:
            step = next_step(
                delivery.attempts,
                delivered=outcome.delivered,
                charged=outcome.charged,
                draw=self._outside.draw,
            )
        is_sent = body is not None and outcome is not None and outcome.phase in SENT
        uptime = self._uptime.milliseconds()
        return AttemptRecord(
            delivery_seq=delivery.seq,
            endpoint_id=attempt.queue.endpoint_id,
            started_at=attempt.started_at,
            duration_ms=duration_ms,
            outcome=outcome,
            state=step.state,
            attempts=step.attempts,
            due_at=now + step.wait_ms,
            due_uptime=uptime + step.wait_ms if step.state == "pending" else None,
            replays=delivery.replays,
            body_sha256=hashlib.sha256(body).digest() if body is not None and is_sent else None,
            retried=step.state == "delivered" and delivery.attempts > 0,
        )

    def _on_recorded(self, records: Sequence[AttemptRecord]) -> None:
        for record in records:
            queue = self._queues[record.endpoint_id]
            queue.finish(record.delivery_seq)
            if record.due_uptime is not None:
                queue.expect_retry(record.due_uptime)
        self._pump_soon()

    def _on_stuck(self, stuck: bool) -> None:  # noqa: FBT001 - it is told one fact
        if stuck:
            self._conditions.begin(UNWRITTEN, "outcomes of webhooks cannot be written: they wait")
            self.hold(UNWRITTEN)
        else:
            self._conditions.end(UNWRITTEN, "outcomes of webhooks are written again")
            self.release(UNWRITTEN)

    def _set_alarm(self, at: int | None) -> None:
        if at == self._alarm_at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = at
        self._alarm = None if at is None else self._uptime.call_at(at, self._ring)

    def _ring(self) -> None:
        """The time of a retry has come, or timers may be wrong: set the alarm anew."""
        self._set_alarm(None)
        self._pump_soon()


def _render(
    reader: Reader, delivery: DueDelivery, venue: Venue, endpoint: Endpoint
) -> bytes | None:
    """The body in the present state; None when its reservation was erased altogether."""
    reservation = None
    if delivery.reservation_id is not None:
        reservation = find_reservation(reader, delivery.reservation_id)
        if reservation is None:
            return None
    return event_body(delivery, reservation, venue, endpoint)
