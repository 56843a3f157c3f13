"""What every test may ask for: a box in a temporary directory, and builders for its rows."""

import atexit
import gc
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hypothesis
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from appliance.box import Box, open_box
from appliance.clock import newest_zone_database
from appliance.core.settings import Settings
from appliance.core.tokens import Tokens
from appliance.database.migrate import migrate
from appliance.environment import Environment
from tests.builders import a_key, furnish
from tests.clocks import StoppedClock, box_clock
from tests.late_connections import watch_event_loops
from tests.ports import held_port

MASTER_KEY = bytes(range(32))

# A busy machine is no counterexample: what is promised about time is measured by `make bench`.
hypothesis.settings.register_profile("venuebox", deadline=None, print_blob=True)
hypothesis.settings.load_profile("venuebox")

watch_event_loops()
gc.set_threshold(50_000, 20, 50)  # a run makes much and keeps most of it

pytest_plugins = ["tests.tiers", "tests.machine"]


@dataclass
class Running:
    """A box that answers, its clock, and a key for each environment."""

    box: Box
    clock: StoppedClock
    client: TestClient[web.Request, web.Application]
    app: web.Application
    live_key: str
    test_key: str

    @property
    def live(self) -> Environment:
        return self.box.live

    @property
    def test(self) -> Environment:
        return self.box.test

    def cookie(self, kind: str) -> str:
        """The name of one of the box's cookies in this client."""
        return f"__Host-venuebox-{kind}-{self.client.port}"

    async def call(
        self, method: str, path: str, *, key: str | None = None, **kwargs: Any
    ) -> tuple[int, Any, dict[str, str]]:
        """A partner's call: (status, decoded body, headers). The key fits the environment."""
        chosen = key or (self.test_key if path.startswith("/test/") else self.live_key)
        headers = {"Authorization": f"Bearer {chosen}", **kwargs.pop("headers", {})}
        async with self.client.request(method, path, headers=headers, **kwargs) as response:
            return response.status, await response.json(), dict(response.headers)


@pytest.fixture(scope="session", autouse=True)
def known_localhost() -> Iterator[None]:
    """The name is this machine's first loopback address, whatever /etc/hosts says or leaves out."""
    ask = socket.getaddrinfo

    def answer(host: Any, *rest: Any, **named: Any) -> Any:
        return ask("127.0.0.1" if host == "localhost" else host, *rest, **named)

    with patch("socket.getaddrinfo", answer):
        yield


@pytest.fixture
def clock() -> StoppedClock:
    """Saturday 21 November 2026, 19:00 in Casablanca."""
    return StoppedClock("2026-11-21T19:00:00Z")


@pytest.fixture
def settings() -> Settings:
    """Roomy limits; a test that is about a limit sets its own."""
    return with_settings(
        api={"rate_limit_per_minute": 100_000, "unauthenticated_per_minute": 100_000}
    )


def with_settings(**sections: dict[str, Any]) -> Settings:
    """Settings that differ from the defaults in what is given."""
    base = Settings()
    changed = {name: replace(getattr(base, name), **values) for name, values in sections.items()}
    return replace(base, **changed)


async def set_rules(environment: Environment, **rules: int) -> None:
    """Change rules of the venue."""
    changes = ", ".join(f"{name} = :{name}" for name in rules)
    sql = f"UPDATE venue SET {changes}"  # noqa: S608 - names of columns
    await environment.database.write(lambda tx: tx.execute(sql, rules))


@cache
def furnished_template() -> Path:
    """The files of a furnished box, made once a run: a test works on its own copy."""
    directory = Path(tempfile.mkdtemp(prefix="venuebox-template-"))
    atexit.register(shutil.rmtree, directory)
    clock = StoppedClock("2026-11-21T19:00:00Z")
    for name in ("live", "test"):
        path = directory / f"{name}.db"
        migrate(path, create=True)
        furnish(path, name, MASTER_KEY, clock)
    return directory


@asynccontextmanager
async def opened_box(
    directory: Path, clock: StoppedClock, settings: Settings, tokens: Tokens | None = None
) -> AsyncIterator[Box]:
    """A furnished box (tests/builders.py) in `directory`, made on first use."""
    with ExitStack() as stack:
        if not (directory / "live.db").exists():
            for template in furnished_template().iterdir():
                shutil.copy(template, directory)
            for look in ("check_before_serving", "migrate"):  # a fresh copy needs neither
                stack.enter_context(patch(f"appliance.box.{look}"))
        box = open_box(
            directory,
            MASTER_KEY,
            settings,
            address="https://box.example",
            clock=box_clock(clock),
            tokens=tokens or Tokens(),
            zones=newest_zone_database(),
        )
    try:
        yield box
    finally:
        await box.close()


@pytest.fixture
async def box(tmp_path: Path, clock: StoppedClock, settings: Settings) -> AsyncIterator[Box]:
    """A box without its web application."""
    async with opened_box(tmp_path, clock, settings) as opened:
        yield opened


@pytest.fixture
def unused_tcp_port() -> Iterator[int]:
    """As the library's, and nobody else is given the port before the test has ended."""
    with held_port() as port:
        yield port


@asynccontextmanager
async def running_box(
    directory: Path, clock: StoppedClock, settings: Settings
) -> AsyncIterator[Running]:
    """A box with the real application, served on a free port of loopback."""
    from tests.application import application_of  # noqa: PLC0415 - heavy, and not for all tests

    async with opened_box(directory, clock, settings) as box:
        app = application_of(box)
        async with TestClient(TestServer(app)) as client:
            yield Running(
                box=box,
                clock=clock,
                client=client,
                app=app,
                live_key=await a_key(box.live),
                test_key=await a_key(box.test),
            )


@pytest.fixture
async def running(
    tmp_path: Path, clock: StoppedClock, settings: Settings
) -> AsyncIterator[Running]:
    """The real application over a furnished box."""
    async with running_box(tmp_path, clock, settings) as found:
        yield found
