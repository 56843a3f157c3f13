"""Fixtures: scripted receivers, a manual timer, and an environment with its dispatcher."""

import contextlib
import dataclasses
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest

from appliance.outbox import announce
from appliance.reservations.rows import insert_reservation
from appliance.webhooks.client import Budgets, Client, connect_directly
from appliance.webhooks.dispatcher import Dependencies, Dispatcher
from appliance.webhooks.endpoints import register_endpoint
from appliance.webhooks.url_policy import EgressGuard, EgressPolicy, parse_target_url
from tests.builders import TONIGHT, table_id
from tests.conftest import with_settings
from tests.waiting import SECONDS, until
from tests.webhooks.alarms import ManualTimer
from tests.webhooks.attempts import BUDGETS
from tests.webhooks.internet import Internet
from tests.webhooks.receivers import Receiver, a_server, an_answer


@pytest.fixture
def settings():
    return with_settings(webhooks={"allow_networks": ("127.0.0.0/8",), "allow_http": True})


@pytest.fixture
async def open_receiver():
    """`receiver = await open_receiver()`: another receiver, closed after the test."""
    async with contextlib.AsyncExitStack() as stack:

        async def open_one(**options):
            receiver = Receiver()
            receiver.port = await stack.enter_async_context(a_server(receiver.converse, **options))
            return receiver

        yield open_one


@pytest.fixture
async def receiver(open_receiver):
    return await open_receiver()


@pytest.fixture
def timer(clock):
    return ManualTimer(clock)


class Surroundings:
    """A machine whose default route the test sets."""

    def __init__(self):
        self.way_out = True

    def has_way_out(self):
        return self.way_out


@pytest.fixture
def surroundings():
    return Surroundings()


class Names:
    """A name server with the names that the test adds. Other names do not exist."""

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


@pytest.fixture
async def make_client(names):
    """`make_client(url)`: a client that may reach loopback. Closed after the test."""
    clients = []

    def make(url, *, budgets=BUDGETS, connect=connect_directly, trust=no_certificates):
        policy = EgressPolicy(("127.0.0.0/8", "::1"), lambda _address: False)
        guard = EgressGuard(policy, names)
        receiver = parse_target_url(url, allow_http=True)
        clients.append(Client(receiver, guard, connect, trust, budgets))
        return clients[-1]

    yield make
    for client in clients:
        await client.close()


@pytest.fixture
async def client(make_client, receiver):
    return make_client(receiver.url)


@dataclass
class World:
    """An environment and its dispatcher, with helpers to change and read the database."""

    environment: object
    clock: object
    outside: Dependencies
    dispatcher: Dispatcher = None
    _minute: object = field(default_factory=lambda: iter(range(2800)))

    async def start(self):
        self.dispatcher = Dispatcher(self.environment, self.outside)
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
        """Insert reservations with their events. Returns the ids."""
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
        """Return each attempt as (n, outcome)."""
        return self.rows("SELECT n, outcome FROM attempt ORDER BY delivery_seq, n")

    async def until(self, condition, what="", seconds=SECONDS):
        """Wait until `condition` is true, which needs commits."""
        await until(condition, what, seconds)

    async def settled(self, *states):
        """Wait until the deliveries are in these states."""
        await until(lambda: self.states() == list(states), f"deliveries that are {states}")

    async def recorded(self, count):
        """Wait until `count` attempts are written."""
        await until(lambda: len(self.attempts()) >= count, f"{count} recorded attempts")


def a_reservation(tx, minute, **values):
    row = {
        "id": tx.new_id(), "status": "confirmed", "source": "partner",
        "table_id": table_id("T1"), "date": TONIGHT, "slot": "19:30", "starts": minute,
        "ends": minute + 1, "guests": 2, "customer_name": "Salma Idrissi",
        "access_code": f"SVC-{minute:04d}", "pass_id": tx.tokens.random_bytes(8),
        "link_expires_at": tx.now, "created_at": tx.now, "updated_at": tx.now,
    } | values  # fmt: skip
    insert_reservation(tx, row)
    announce(tx, "reservation.created", row["id"])
    return row["id"]


async def no_certificates():
    raise AssertionError("no https receiver is expected in this test")


@pytest.fixture
def outside(settings, names, clock, timer, surroundings):
    policy = EgressPolicy(settings.webhooks.allow_networks, lambda _address: False)
    return Dependencies(
        guard=EgressGuard(policy, names),
        trust=no_certificates,
        machine_time=clock.now,
        call_later=timer,
        connect=connect_directly,
        draw=lambda: 0.0,
        budgets=Budgets(total=60.0, connect=60.0, drain=0.2, idle=60.0),
        has_way_out=surroundings.has_way_out,
    )


@pytest.fixture
async def world(box, clock, outside, open_receiver):
    """A live environment. The test starts the dispatcher; it stops before the receivers."""
    made = World(box.live, clock, outside)
    yield made
    await made.stop()


@pytest.fixture
async def tried_once(world, receiver):
    """A started world with one delivery that has failed once. Yields the reservation's id."""
    await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    await world.start()
    [reservation_id] = await world.book()
    await world.recorded(1)
    return reservation_id


@pytest.fixture
def change_outside(world):
    """`change_outside(draw=…)`: replace dependencies of the dispatcher that is started next."""

    def change(**parts):
        world.outside = dataclasses.replace(world.outside, **parts)

    return change


@pytest.fixture
def internet(names, surroundings, change_outside):
    """An internet connection that the test can cut."""
    internet = Internet(names, surroundings)
    policy = EgressPolicy(("127.0.0.0/8",), lambda _address: False)
    change_outside(guard=EgressGuard(policy, names), connect=internet.connect)
    return internet
