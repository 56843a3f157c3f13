"""No request from a stranger blocks the event loop or causes an internal error.

Processor time of the event loop's thread is measured, so other load on the machine does not count.
"""

import asyncio
import json
import logging
import re
import select
import socket
import statistics
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from appliance.core.tokens import hash_token
from appliance.door.terminals import issue_terminal
from appliance.http.request import PRINCIPALS
from appliance.reservations.by_guest import claim
from tests.application import application_of
from tests.clocks import StoppedClock
from tests.conftest import opened_box, set_rules, with_settings
from tests.promises.attacks.hostile_bodies import BODIES, FORM, JSON, ask, request
from tests.unit.arrivals import add_reservation
from web.connection import Connection, ConnectionLimit

ROOT = Path(__file__).parents[3]
MOST = 0.020  # seconds of processor time
UNSAFE = {"POST", "PUT", "PATCH", "DELETE"}
UNKNOWN_ID = "01890000-0000-7000-8000-000000000000"
ONE_OF_EACH = ("a part in punycode", "too many fields", "deep arrays")


class ServedBox:
    """A box as `venuebox serve` runs it, in its own thread."""

    def __init__(self, directory):
        self.directory = directory
        self.clock = StoppedClock("2026-11-21T19:00:00Z")
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True)

    async def serve(self):
        self.loop, self.over = asyncio.get_running_loop(), asyncio.Event()
        settings = with_settings(
            api={"rate_limit_per_minute": 10**6, "unauthenticated_per_minute": 10**6},
        )
        async with opened_box(self.directory, self.clock, settings) as self.box:
            await set_rules(self.box.live, booking_page=1)
            self.app = application_of(self.box)
            self.live = self.box.live
            runner = web.AppRunner(self.app, handle_signals=False, shutdown_timeout=0)
            await runner.setup()
            one = partial(Connection, runner.server, ConnectionLimit(2000), keep_alive=30)
            server = await self.loop.create_server(one, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            self.ready.set()
            await self.over.wait()
            server.close()
            await runner.cleanup()

    def run(self, work):
        """Return the result of `work`, run in the box's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def cookie(self, kind):
        """Return the name of a cookie for requests whose Host has no port."""
        return f"__Host-venuebox-{kind}"

    def spent(self):
        """Return the processor seconds of the event loop's thread."""
        return time.clock_gettime(time.pthread_getcpuclockid(self.thread.ident))

    def cost(self, raw):
        """Return the status of the request, and its lowest processor time of a few attempts."""
        least = float("inf")
        for _ in range(5):
            self.clock.advance(61)  # so that no rate limit refuses the request
            before = self.spent()
            status = ask(self.port, raw)
            least = min(least, self.spent() - before)
            if least < MOST:
                break
        return status, least

    def routes(self, *kinds):
        """Return (method, path) of each changing route declared for one of `kinds`."""
        return sorted(
            (method, re.sub(r"\{(\w+):[^}]*\}", r"{\1}", path))
            for (method, path), principal in self.app[PRINCIPALS].items()
            if method in UNSAFE and principal.kind in kinds
        )

    def public(self):
        """Return the routes that need no session, key or terminal token.

        Excludes the one that makes a browser forget its reservations, because it reads no body.
        """
        pairing = [route for route in self.routes("terminal") if route[1].endswith("/pair")]
        return [route for route in (*self.routes("anybody"), *pairing) if "forget" not in route[1]]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    found = ServedBox(tmp_path_factory.mktemp("served"))
    found.thread.start()
    assert found.ready.wait(60)
    yield found
    found.loop.call_soon_threadsafe(found.over.set)
    found.thread.join(60)


@pytest.fixture(autouse=True)
def nothing_is_logged(caplog):
    caplog.set_level(logging.INFO)
    yield
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def unknown(path):
    return re.sub(r"\{[^}]*\}", UNKNOWN_ID, path)


SOME = [
    name if name in ONE_OF_EACH else pytest.param(name, marks=pytest.mark.slow) for name in BODIES
]


@pytest.mark.parametrize("name", SOME)
def test_no_body_costs_a_public_route_more_than_20_ms(served, name):
    found = {
        (method, path): served.cost(request(method, unknown(path), *BODIES[name]))
        for method, path in served.public()
    }

    assert {
        "/book",
        "/portal/sign-in",
        "/portal/setup",
        "/portal/welcome",
        "/terminal/v1/pair",
        "/claim-guest/{token}",
        "/me/{id}",
        "/test/echo/{token}",
    } <= {r[1] for r in found}
    assert {route: cost for route, cost in found.items() if cost[1] >= MOST} == {}
    assert {route: cost for route, cost in found.items() if not 400 <= cost[0] < 500} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_no_body_costs_more_than_20_ms_when_a_key_or_session_is_missing(served, name):
    found = {
        (method, path): served.cost(request(method, unknown(path), *BODIES[name]))
        for method, path in served.routes("key", "terminal", "staff")
    }

    assert len(found) > 100
    assert {route: cost for route, cost in found.items() if cost[1] >= MOST} == {}
    # Requests without a session are redirected to the sign-in page.
    assert {cost[0] for cost in found.values()} <= {303, 400, 401, 403, 404}


@pytest.fixture(scope="module")
def opened(served):
    """Return the requests possible with links and cookies: (method, path, cookie)."""
    found = []
    for environment in served.box.environments:
        keyring, write = environment.keyring, environment.database.write
        guest = served.run(write(partial(add_reservation, date="2026-12-24")))
        served.run(write(claim, guest.id, hash_token(UNKNOWN_ID)))
        suffix = "-test" if environment.prefix else ""
        cookie = f"__Host-venuebox-guest{suffix}={keyring.device_token(UNKNOWN_ID)}"
        found += [
            ("POST", f"{environment.prefix}/me/{guest.id}", cookie),
            (
                "POST",
                f"{environment.prefix}/claim-guest/{keyring.claim_token(guest.id, 0)}",
                cookie,
            ),
        ]
    return [*found, ("PUT", f"/test/echo/{keyring.echo_token(guest.id)}", "")]


@pytest.mark.slow
@pytest.mark.process
def test_a_door_can_scan_while_eight_clients_send_the_worst_bodies(served):
    _, token = served.run(served.live.database.write(issue_terminal, "Front door"))
    command = [sys.executable, "-m", "tests.promises.attacks.hostile_bodies", str(served.port)]
    costs = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as sending:
        try:
            assert sending.stdout.readline() == b"sending\n"
            for number in range(25):
                body = json.dumps({"scanId": f"scan-{number}", "code": "none of ours"}).encode()
                raw = request("POST", "/terminal/v1/scans", JSON, body,
                              Authorization=f"Bearer {token}")  # fmt: skip
                before = served.spent()
                assert ask(served.port, raw) == 200
                costs.append(served.spent() - before)
                assert sending.poll() is None
        finally:
            sending.kill()

    # The work of the box between the request and the verdict.
    assert statistics.median(costs) < 0.050


def test_the_rate_limit_of_an_address_is_applied_before_the_body_is_read(served, opened):
    forms = [path for _, path in served.public() if "/portal/" in path or path.endswith("/book")]
    links = [(path, cookie) for method, path, cookie in opened if method == "POST"]
    for path, cookie in [*((path, "") for path in forms), *links]:
        served.clock.advance(61)
        head = request("POST", path, FORM, b"x" * 60_000, Cookie=cookie)[:-60_000]
        with ExitStack() as silent:
            senders = [
                silent.enter_context(socket.create_connection(("127.0.0.1", served.port)))
                for _ in range(61)
            ]
            for sender in senders:
                sender.sendall(head)
            # The box would wait for a body for 30 s.
            answered, _, _ = select.select(senders, [], [], 20)
            assert answered[0].recv(12) == b"HTTP/1.1 429", path
