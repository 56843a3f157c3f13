"""A venue that sends webhooks: scripted receivers, an uptime that the test moves, a dispatcher."""

import asyncio
import contextlib
import dataclasses
import json
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest

from appliance.actions.announce import announce
from appliance.actions.register_endpoint import register_endpoint
from appliance.webhooks.addresses import EgressPolicy
from appliance.webhooks.client import Budgets, connect_directly
from appliance.webhooks.dispatcher import Dispatcher
from appliance.webhooks.egress import EgressGuard
from appliance.webhooks.outside import Outside
from tests.builders import TONIGHT, table_id
from tests.conftest import with_settings

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",), "allow_http": True})


def an_answer(status, *headers, body=b""):
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass
class Request:
    """What a receiver got."""

    line: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self):
        return json.loads(self.raw)

    @property
    def reservation(self):
        return self.body["data"]["reservation"]

    @property
    def id(self):
        return self.headers["x-service-delivery"]


class Receiver:
    """A TCP server that reads requests and answers as it is told: bytes, or a coroutine.

    `answers` are used up in turn; then `always` is given. A script `async (writer, request)`
    may do as it likes; returning False closes the connection.
    """

    def __init__(self):
        self.answers = []
        self.always = OK
        self.delay = 0.0
        self.requests = []
        self.connections = 0
        self.at_once = 0
        self.most_at_once = 0
        self.port = 0
        self._changed = asyncio.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook"

    async def got(self, count, seconds=5.0):
        """Wait until `count` requests have come; all of them."""
        async with asyncio.timeout(seconds):
            while len(self.requests) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.requests

    async def converse(self, reader, writer):
        self.connections += 1
        while (request := await _read_request(reader)) is not None:
            self.requests.append(request)
            self._changed.set()
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            try:
                if self.delay:
                    await asyncio.sleep(self.delay)
                script = self.answers.pop(0) if self.answers else self.always
                if isinstance(script, bytes):
                    writer.write(script)
                elif await script(writer, request) is False:
                    return
            finally:
                self.at_once -= 1


async def _read_request(reader):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *rest = head.decode().strip().split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (header.partition(":") for header in rest)}
    return Request(line, headers, await reader.readexactly(int(headers["content-length"])))


@contextlib.asynccontextmanager
async def a_server(converse, **options):
    """A TCP server on a free port of loopback; everything of it is gone afterwards."""
    tasks, writers = set(), set()

    async def connected(reader, writer):
        tasks.add(asyncio.current_task())
        writers.add(writer)
        try:
            await converse(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()


@pytest.fixture
async def open_receiver():
    """`receiver = await open_receiver()`: one more receiver, closed after the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def open_one(**options):
            receiver = Receiver()
            receiver.port = await stack.enter_async_context(a_server(receiver.converse, **options))
            return receiver

        yield open_one


@pytest.fixture
async def receiver(open_receiver):
    return await open_receiver()


class ManualUptime:
    """An uptime that stands still until the test lets time pass."""

    def __init__(self, clock, boot="first boot", milliseconds=1_000_000):
        self.boot = boot
        self.now = milliseconds
        self.alarms = {}
        self.alarms_set = 0
        self._clock = clock

    def milliseconds(self):
        return self.now

    def call_at(self, milliseconds, callback):
        self.alarms_set += 1
        alarm = _Alarm(self.alarms, self.alarms_set)
        self.alarms[alarm.number] = (milliseconds, callback)
        return alarm

    def advance(self, seconds):
        """Let time pass on every clock, and ring the alarms that became due."""
        self.now += round(seconds * 1000)
        self._clock.advance(seconds)
        for number, (at, callback) in list(self.alarms.items()):
            if at <= self.now and self.alarms.pop(number, None):
                callback()

    @property
    def next_alarm(self):
        """Seconds until the earliest alarm, or None."""
        earliest = min((at for at, _ in self.alarms.values()), default=None)
        return None if earliest is None else (earliest - self.now) / 1000


class _Alarm:
    def __init__(self, alarms, number):
        self.number = number
        self._alarms = alarms

    def cancel(self):
        self._alarms.pop(self.number, None)


@pytest.fixture
def uptime(clock):
    return ManualUptime(clock)


class Names:
    """A name server that the test fills in; unknown names do not exist."""

    def __init__(self):
        self.known = {}
        self.asked = []

    async def __call__(self, host):
        self.asked.append(host)
        found = self.known.get(host, OSError("no such name"))
        if isinstance(found, Exception):
            raise found
        return [ip_address(text) for text in found]


@pytest.fixture
def names():
    return Names()


@dataclass
class World:
    """An environment, its dispatcher, and the means to make something happen in it."""

    environment: object
    clock: object
    outside: Outside
    dispatcher: Dispatcher = None
    _minute: object = field(default_factory=lambda: iter(range(2800)))

    async def start(self):
        self.dispatcher = Dispatcher(self.environment, self.clock, self.outside)
        await self.dispatcher.start()
        return self.dispatcher

    async def stop(self, deadline=5.0):
        if self.dispatcher is not None:
            await self.dispatcher.close(deadline)
            self.dispatcher = None

    async def register(self, url, events=("reservation.created", "reservation.cancelled")):
        """Register an endpoint: (endpoint, secret)."""
        keyring = self.environment.keyring
        return await self.database.write(register_endpoint, keyring, url, tuple(events))

    @property
    def database(self):
        return self.environment.database

    async def book(self, count=1, **values):
        """Insert reservations and announce each; their ids."""
        return [
            await self.database.write(a_reservation, next(self._minute), **values)
            for _ in range(count)
        ]

    async def announce(self, event_type, reservation_id):
        await self.database.write(announce, event_type, reservation_id)

    async def change(self, reservation_id, **values):
        assignments = ", ".join(f"{name} = :{name}" for name in values)
        await self.database.write(
            lambda tx: tx.execute(
                f"UPDATE reservation SET {assignments} WHERE id = :id",  # noqa: S608 - columns of the test
                {**values, "id": reservation_id},
            )
        )

    def rows(self, sql, **parameters):
        return self.database.peek(lambda reader: list(reader.rows(sql, parameters)))

    def states(self):
        return [state for (state,) in self.rows("SELECT state FROM delivery ORDER BY seq")]

    def attempts(self):
        """Each attempt as (n, outcome)."""
        return self.rows("SELECT n, outcome FROM attempt ORDER BY delivery_seq, n")

    async def until(self, condition, seconds=5.0):
        """Wait for something that commits bring about."""
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - any commit may bring it about
                await asyncio.sleep(0.002)

    async def settled(self, *states):
        """Wait until the deliveries are in these states."""
        await self.until(lambda: self.states() == list(states))

    async def recorded(self, count):
        """Wait until `count` attempts are written."""
        await self.until(lambda: len(self.attempts()) >= count)


def a_reservation(tx, minute, **values):
    row = {
        "id": tx.new_id(), "status": "confirmed", "source": "partner",
        "table_id": table_id("T1"), "date": TONIGHT, "slot": "19:30", "starts": minute,
        "ends": minute + 1, "guests": 2, "customer_name": "Salma Idrissi",
        "access_code": tx.tokens.new_access_code(), "pass_id": tx.tokens.random_bytes(8),
        "link_expires_at": tx.now, "created_at": tx.now, "updated_at": tx.now,
    } | values  # fmt: skip
    tx.insert("reservation", row)
    announce(tx, "reservation.created", row["id"])
    return row["id"]


async def no_certificates():
    raise AssertionError("no https receiver is expected in this test")


@pytest.fixture
def outside(settings, names, uptime):
    policy = EgressPolicy(settings.webhooks.allow_networks, lambda _address: False)
    return Outside(
        guard=EgressGuard(policy, names),
        trust=no_certificates,
        uptime=uptime,
        connect=connect_directly,
        draw=lambda: 0.0,
        budgets=Budgets(total=2.0, connect=1.0, drain=0.2, idle=4.0),
    )


@pytest.fixture
async def world(box, clock, outside, open_receiver):
    """A live environment, its dispatcher not started yet, and stopped before the receivers."""
    made = World(box.live, clock, outside)
    yield made
    await made.stop()


@pytest.fixture
def change_outside(world):
    """`change_outside(draw=…)`: another outside for the dispatcher that is started next."""

    def change(**parts):
        world.outside = dataclasses.replace(world.outside, **parts)

    return change
