"""One environment's dispatcher, which sends committed deliveries and records the attempts.

The dispatcher does not poll. It looks for work after a commit that queued deliveries, when an
attempt ends, and when its only alarm, set for the earliest retry, goes off. A delivery in flight is
still stored as pending, so after a crash it is sent again with the same id. No clock holds a
delivery back: the signature contains the machine's time.
"""

import asyncio
import hashlib
import logging
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from appliance.clock import Alarm, BoxClock, CallLater, Cancellable
from appliance.core.errors import InvalidWebhookUrl, Unavailable, log_exception
from appliance.core.network import has_way_out
from appliance.core.settings import WebhookSettings
from appliance.database.connection import Reader
from appliance.database.database import ChangedBeside
from appliance.environment import Environment
from appliance.outbox import DeliveriesQueued
from appliance.reservations.rows import get_reservation
from appliance.venue.model import get_venue
from appliance.webhooks.client import (
    BOX_OFFLINE,
    CONN_TIMEOUT,
    DNS_TEMP,
    DONE,
    GUARD,
    NO_ROUTE,
    SENT,
    Budgets,
    Client,
    Connect,
    OwnAuthority,
    SystemTrust,
    Trust,
    connect_directly,
)
from appliance.webhooks.deliveries import AttemptRecord, DueDelivery, Outcome
from appliance.webhooks.endpoint_queue import EndpointQueue
from appliance.webhooks.endpoints import Endpoint, EndpointsChanged, list_active_endpoints
from appliance.webhooks.payload import event_body, sample_body
from appliance.webhooks.recorder import Recorder
from appliance.webhooks.retry_policy import next_step
from appliance.webhooks.url_policy import EgressGuard, TargetUrl, make_guard, parse_target_url

log = logging.getLogger(__name__)


class Inside:
    """Receivers inside this process, such as the test environment's echo receiver.

    They are reached over a socket pair, so the egress guard needs no exception for loopback.
    """

    def __init__(self, names: Callable[[str], bool], connect: Connect) -> None:
        """`names` must return whether a URL belongs to a receiver inside this process.

        `connect` gets an empty sequence of addresses, because a socket pair has none.
        """
        self._connect = connect
        self.names = names

    def make_client(self, receiver: TargetUrl, trust: Trust, budgets: Budgets) -> Client:
        """Create a client that can reach internal receivers only."""
        # There is no TLS on a socket pair. With port 443 but no TLS, the Host header would contain
        # the port, so use port 80.
        port = 80 if receiver.port == 443 else receiver.port
        plain = replace(receiver, secure=False, port=port)
        client = Client(plain, None, self._connect, trust, budgets)
        client.addresses = ()
        return client


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The dispatcher's dependencies. `inside` is set in the test environment only.

    `machine_time` is the time of signatures, in ms since 1970. `draw` returns a random number in
    [0, 1).
    """

    guard: EgressGuard
    trust: Trust
    machine_time: Callable[[], int]
    call_later: CallLater
    connect: Connect = connect_directly
    draw: Callable[[], float] = random.random
    budgets: Budgets = field(default_factory=Budgets)
    inside: Inside | None = None
    has_way_out: Callable[[], bool] = has_way_out

    def is_inside(self, url: object) -> bool:
        """Whether `url` is the URL of a receiver inside this process."""
        return isinstance(url, str) and self.inside is not None and self.inside.names(url)

    def make_client(self, endpoint: Endpoint, *, allow_http: bool) -> Client:
        """Create the client for an endpoint. Raises InvalidWebhookUrl if its URL is invalid."""
        receiver = parse_target_url(endpoint.url, allow_http=allow_http)
        if self.inside and self.inside.names(endpoint.url):
            return self.inside.make_client(receiver, self.trust, self.budgets)
        trust = self.trust if endpoint.ca is None else OwnAuthority(endpoint.ca)
        return Client(receiver, self.guard, self.connect, trust, self.budgets)


def make_dependencies(settings: WebhookSettings, clock: BoxClock) -> Dependencies:
    """Create the production dependencies. Raises OperatorError if `allow_networks` is invalid."""
    return Dependencies(
        guard=make_guard(settings),
        trust=SystemTrust(),
        machine_time=clock.machine.now,
        call_later=partial(Alarm, clock),
    )


IN_FLIGHT_MAX = 32
_UNWRITTEN_MAX = 256
_READ_AGAIN_SECONDS = 15.0

_QUIET_SECONDS = 60.0
_TRY_AGAIN_SECONDS = 60.0
_EVIDENCE_SECONDS = 2 * _TRY_AGAIN_SECONDS
_EVIDENCE = (NO_ROUTE, DNS_TEMP, CONN_TIMEOUT)


class OfflineGate:
    """Decides from the external endpoints' recent results whether the box itself was offline."""

    def __init__(self, has_way_out: Callable[[], bool], monotonic: Callable[[], float]) -> None:
        self._has_way_out = has_way_out
        self._monotonic = monotonic
        self._last_success: float | None = None
        self._failed_at: dict[str, float] = {}

    def note_success(self) -> None:
        """Record that an external endpoint responded, with any status."""
        self._last_success = self._monotonic()
        self._failed_at.clear()

    def is_to_blame(self, outcome: Outcome, client: Client, external_hosts: set[str]) -> bool:
        """Whether the attempt failed because the box had no route to the client's receiver.

        `external_hosts` are the hosts of all receivers outside the venue's network. For a failed
        connection to one of them, this is true if the system has no default route. It is also true
        if no external endpoint has responded for a minute, and either two hosts failed recently,
        or there is only one host and the error was `no_route` or `dns_temp`. For a local receiver,
        this is true if this machine has no route to it.
        """
        now = self._monotonic()
        if client.is_local:
            return outcome.code == NO_ROUTE
        if outcome.code not in _EVIDENCE:
            return False
        self._failed_at[client.receiver.host] = now
        if not self._has_way_out():
            return True
        if self._last_success is not None and now - self._last_success < _QUIET_SECONDS:
            return False
        lately = sum(now - at <= _EVIDENCE_SECONDS for at in self._failed_at.values())
        return lately >= (2 if outcome.code == CONN_TIMEOUT else min(2, len(external_hosts)))


class _Attempt(Struct, frozen=True):
    """An attempt to be made now. `started_at` is in ms since 1970."""

    queue: EndpointQueue
    delivery: DueDelivery
    body: bytes
    started_at: int
    venue_id: str


class Dispatcher:
    """Sends the deliveries of one environment. Call `start` once and `close` once."""

    def __init__(self, environment: Environment, dependencies: Dependencies) -> None:
        settings = environment.settings.webhooks
        self._keyring = environment.keyring
        self._environment_name = environment.name
        self._allow_http = environment.name == "test" or settings.allow_http
        self._database = database = environment.database
        self._dependencies = dependencies
        self._clock = database.clock
        self._queues: dict[str, EndpointQueue] = {}
        # Both environments are offline together, and the console shows warnings: say it once.
        self._level = logging.WARNING if environment.name == "live" else logging.INFO
        self._offline_gate = OfflineGate(dependencies.has_way_out, self._clock.monotonic)
        self._recorder = Recorder(database, self._on_recorded, self._on_stuck)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stuck = False  # the outcomes of attempts cannot be written
        self._alarm: Cancellable | None = None
        self._pump_is_due = False
        self._running = False

    async def start(self) -> None:
        """Start sending pending deliveries, and listen for new deliveries."""
        self._running = True
        kinds = DeliveriesQueued, EndpointsChanged, ChangedBeside
        self._database.on_commit(self._on_commit, *kinds)
        self._reload()
        self._pump_soon()

    async def close(self, deadline: float = 10.0) -> None:
        """Start no more attempts, wait up to `deadline` s for running ones, and write outcomes.

        All other deliveries stay pending and are sent after the next start.
        """
        self._running = False
        self._set_alarm(None)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=deadline)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._recorder.close()
        for queue in self._queues.values():
            self._close(queue.close())
        await asyncio.gather(*self._tasks)

    async def check_url(self, url: object) -> str:
        """Return `url` if it may be registered. Raises InvalidWebhookUrl if not."""
        if not self._dependencies.is_inside(url):
            await self._dependencies.guard.check(url, allow_http=self._allow_http)
        return str(url)

    def is_echo_receiver(self, url: str) -> bool:
        """Whether `url` is one of the sandbox's echo receivers, inside this process."""
        return self._dependencies.is_inside(url)

    def _on_commit(self, notices: Sequence[object]) -> None:
        if not self._running:
            return
        for notice in notices:
            if isinstance(notice, DeliveriesQueued):
                for endpoint_id in self._queues.keys() & notice.endpoint_ids:
                    self._queues[endpoint_id].expect()
                    self._pump_soon()
            elif isinstance(notice, (EndpointsChanged, ChangedBeside)):
                self._on_endpoints_changed(notice)

    def _on_endpoints_changed(self, notice: EndpointsChanged | ChangedBeside) -> None:
        """Reload the endpoints. If they cannot be read, retry in 15 s."""
        try:
            self._reload()
        except Unavailable:
            again = partial(self._on_commit, [ChangedBeside()])
            self._dependencies.call_later(_READ_AGAIN_SECONDS, again)
            return
        for endpoint_id, queue in self._queues.items():
            if isinstance(notice, ChangedBeside) or endpoint_id == notice.endpoint_id:
                queue.expect(retries=True)
        self._pump_soon()

    def _reload(self) -> None:
        """Update the queues from the `endpoint` table.

        A deactivated endpoint's queue is kept, because the endpoint may be activated again before
        its last attempts have ended.
        """
        active = {endpoint.id: endpoint for endpoint in self._database.peek(list_active_endpoints)}
        for endpoint_id in self._queues.keys() - active.keys():
            self._close(self._queues[endpoint_id].close())
        self._resume([])
        for endpoint in active.values():
            queue = self._queues.setdefault(endpoint.id, EndpointQueue(endpoint.id))
            if queue.sends_as(endpoint):
                queue.endpoint = endpoint
            else:
                self._close(queue.client)
                queue.follow(endpoint, self._make_client(endpoint), self._keyring)

    def _make_client(self, endpoint: Endpoint) -> Client | None:
        try:
            return self._dependencies.make_client(endpoint, allow_http=self._allow_http)
        except InvalidWebhookUrl as error:
            log.info("webhooks: endpoint %s is blocked: %s", endpoint.id, error)
            return None

    def _close(self, client: Client | None) -> None:
        if client is not None:
            self._spawn(client.close())

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _pump_soon(self) -> None:
        """Call `_pump` once, after the callbacks that are already scheduled."""
        if not self._pump_is_due and self._running:
            self._pump_is_due = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Start the attempts that are due, and set the alarm for the next due time."""
        self._pump_is_due = False
        if self._is_stuck or not self._running or self._recorder.waiting >= _UNWRITTEN_MAX:
            return
        now, monotonic = self._clock.now(), self._clock.monotonic()
        ready = [queue for queue in self._queues.values() if queue.wants(now, monotonic)]
        for queue in sorted(ready, key=lambda queue: queue.in_flight):
            try:
                self._database.peek(self._start_attempts, queue, now)
            except Exception as error:  # noqa: BLE001 - continue with the other queues
                log_exception("webhooks: read deliveries", error)
                queue.pause(monotonic + _READ_AGAIN_SECONDS)
        waits = [queue.seconds_left(now, monotonic) for queue in self._queues.values()]
        self._set_alarm(min((wait for wait in waits if wait is not None), default=None))

    def _start_attempts(self, reader: Reader, queue: EndpointQueue, now: int) -> None:
        """Start the queue's due attempts. After an error, attempts already started continue."""
        places = IN_FLIGHT_MAX - sum(each.in_flight for each in self._queues.values())
        for delivery in queue.choose(reader, now, min(places, queue.room)):
            body = _render(reader, delivery, queue.endpoint)
            queue.begin(delivery)
            venue_id = get_venue(reader).id
            self._spawn(self._run(_Attempt(queue, delivery, body, now, venue_id)))

    async def _run(self, attempt: _Attempt) -> None:
        """Sign and send the body. Record every failure as an outcome.

        The delay before a retry starts when this attempt ends.
        """
        queue, delivery = attempt.queue, attempt.delivery
        client, started, request = queue.client, self._clock.monotonic(), None
        outcome = Outcome(GUARD, "blocked")
        try:
            request = queue.request(
                delivery, self._environment_name, attempt.venue_id, attempt.body,
                attempt.started_at, self._dependencies.machine_time(),
            )  # fmt: skip
            if client is not None:
                outcome = await client.post(request)
        except Exception as error:  # noqa: BLE001 - the attempt failed and is retried
            log_exception(f"webhooks: delivery {delivery.id}", error)
            outcome = Outcome(DONE, "failed")
        duration_ms = round((self._clock.monotonic() - started) * 1000)
        was_offline = queue.offline
        if client is not None:
            outcome = self._check_offline(queue, client, outcome)
        queue.end(outcome)
        if was_offline and outcome.code == BOX_OFFLINE:  # log only the first failure in an outage
            queue.finish(delivery.seq)
        else:
            record = self._record(attempt, outcome, duration_ms)
            if outcome.phase in SENT and not outcome.delivered and client and request:
                record = replace(record, request=client.text(request))
            self._recorder.add(record)
        self._pump_soon()

    def _check_offline(self, queue: EndpointQueue, client: Client, outcome: Outcome) -> Outcome:
        """Return `outcome`, or `box_offline` if the box had no route to the receiver."""
        is_local, is_answered = client.is_local, outcome.http_status is not None
        if is_answered and not is_local:
            self._offline_gate.note_success()
        if is_answered and not queue.offline:
            return outcome
        external = [each for each in self._queues.values() if each.endpoint and not each.is_local]
        affected = [queue] if is_local else external
        if is_answered:
            self._resume(affected)
            return outcome
        hosts = {each.client.receiver.host for each in external if each.client is not None}
        if not self._offline_gate.is_to_blame(outcome, client, hosts):
            if queue.offline:
                self._resume([queue])
            return outcome
        if not self._is_offline:
            log.log(
                self._level, "webhooks: the box is offline, so they wait and attempts do not count"
            )
        for each in affected:
            if each is queue or not each.offline:
                each.offline = True
                each.pause(self._clock.monotonic() + _TRY_AGAIN_SECONDS)
        return replace(outcome, code=BOX_OFFLINE, charged=False)

    def _resume(self, queues: Sequence[EndpointQueue]) -> None:
        """Resume these queues."""
        was_offline = self._is_offline
        for queue in queues:
            queue.resume()
        if was_offline and not self._is_offline:
            log.info("webhooks: the box is online again, so they are sent again")

    @property
    def _is_offline(self) -> bool:
        return any(queue.offline for queue in self._queues.values())

    def _record(self, attempt: _Attempt, outcome: Outcome, duration_ms: int) -> AttemptRecord:
        delivery, now = attempt.delivery, self._clock.now()
        step = next_step(
            delivery.attempts,
            delivered=outcome.delivered,
            charged=outcome.charged,
            draw=self._dependencies.draw,
        )
        is_sent = outcome.phase in SENT
        return AttemptRecord(
            delivery_seq=delivery.seq,
            endpoint_id=attempt.queue.endpoint_id,
            started_at=attempt.started_at,
            duration_ms=duration_ms,
            outcome=outcome,
            state=step.state,
            attempts=step.attempts,
            due_at=now + step.wait_ms,
            replays=delivery.replays,
            body_sha256=hashlib.sha256(attempt.body).digest() if is_sent else None,
        )

    def _on_recorded(self, records: Sequence[AttemptRecord]) -> None:
        for record in records:
            queue = self._queues[record.endpoint_id]
            queue.finish(record.delivery_seq)
            if record.state == "pending":
                queue.expect_retry(record.due_at)
        self._pump_soon()

    def _on_stuck(self, stuck: bool) -> None:  # noqa: FBT001 - a callback with one argument
        self._is_stuck = stuck
        if not stuck:
            self._pump_soon()

    def _set_alarm(self, seconds: float | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        call_later = self._dependencies.call_later
        self._alarm = None if seconds is None else call_later(seconds, self._pump_soon)


def _render(reader: Reader, delivery: DueDelivery, endpoint: Endpoint | None) -> bytes:
    """Return the body with the reservation's current data."""
    assert endpoint is not None  # noqa: S101 - every queue in use has an endpoint
    if delivery.reservation_id is None:
        return sample_body(reader, delivery)
    reservation = get_reservation(reader, delivery.reservation_id)
    return event_body(reader, delivery, reservation, endpoint)
