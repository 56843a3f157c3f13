"""Fixtures for all tests: a box in a temporary directory, and builders for its rows."""

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

# No deadline, because the machine may be busy. `make bench` measures times.
hypothesis.settings.register_profile("venuebox", deadline=None, print_blob=True)
hypothesis.settings.load_profile("venuebox")

watch_event_loops()
gc.set_threshold(50_000, 20, 50)  # a run creates many objects and keeps most of them

pytest_plugins = ["tests.tiers", "tests.machine"]


@dataclass
class Running:
    """A running box, its clock, and a key for each environment."""

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
        """Return the name of one of the box's cookies in this client."""
        return f"__Host-venuebox-{kind}-{self.client.port}"

    async def call(
        self, method: str, path: str, *, key: str | None = None, **kwargs: Any
    ) -> tuple[int, Any, dict[str, str]]:
        """Send a partner's call with the key of the environment.

        Returns (status, decoded body, headers).
        """
        chosen = key or (self.test_key if path.startswith("/test/") else self.live_key)
        headers = {"Authorization": f"Bearer {chosen}", **kwargs.pop("headers", {})}
        async with self.client.request(method, path, headers=headers, **kwargs) as response:
            return response.status, await response.json(), dict(response.headers)


@pytest.fixture(scope="session", autouse=True)
def known_localhost() -> Iterator[None]:
    """Resolve `localhost` to 127.0.0.1, whatever /etc/hosts contains."""
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
    """Settings with generous limits. A test of a limit sets its own."""
    return with_settings(
        api={"rate_limit_per_minute": 100_000, "unauthenticated_per_minute": 100_000}
    )


def with_settings(**sections: dict[str, Any]) -> Settings:
    """Return the default settings with these changes."""
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
    """The files of a furnished box, created once per run. Each test works on a copy."""
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
    """Open a furnished box (tests/builders.py) in `directory`, which is created on first use."""
    with ExitStack() as stack:
        if not (directory / "live.db").exists():
            for template in furnished_template().iterdir():
                shutil.copy(template, directory)
            for look in ("check_before_serving", "migrate"):  # not needed for a copy
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
    """A free port, like the library's, that stays reserved until the test ends."""
    with held_port() as port:
        yield port


@asynccontextmanager
async def running_box(
    directory: Path, clock: StoppedClock, settings: Settings
) -> AsyncIterator[Running]:
    """Run a box with the real application on a free port of loopback."""
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
    """The real application with a furnished box."""
    async with running_box(tmp_path, clock, settings) as found:
        yield found
