"""A door of the real application with a furnished box, and terminals that call it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient

from appliance.box import Box
from appliance.door.guest_pass import pass_text
from appliance.door.terminals import issue_terminal
from appliance.environment import Environment
from appliance.http.request import CALLER_OF
from appliance.reservations.model import Reservation
from appliance.reservations.rows import get_reservation
from tests.clocks import StoppedClock
from tests.conftest import Running
from tests.unit.arrivals import add_reservation
from web import application


@dataclass
class Door:
    """One terminal of one environment, with its calls and its guests."""

    environment: Environment
    client: TestClient[web.Request, web.Application]
    clock: StoppedClock
    terminal_id: str
    token: str
    _numbers: count = field(default_factory=lambda: count(1))

    async def call(
        self, method: str, path: str, body: Any = None, **kwargs: Any
    ) -> tuple[int, dict[str, Any]]:
        """Send a request below the terminal's base path. Return (status, decoded body).

        A header that is None is not sent.
        """
        headers = {"Authorization": f"Bearer {self.token}"} | kwargs.pop("headers", {})
        headers = {name: value for name, value in headers.items() if value is not None}
        url = f"{self.environment.prefix}/terminal/v1{path}"
        async with self.client.request(
            method, url, json=body, headers=headers, **kwargs
        ) as response:
            return response.status, await response.json()

    async def scan(self, code: str, **members: Any) -> dict[str, Any]:
        """Scan a code, with a new scanId unless one is given. Return the verdict."""
        body = {"scanId": f"scan-{next(self._numbers)}", "code": code, **members}
        status, verdict = await self.call("POST", "/scans", body)
        assert status == 200, verdict
        return verdict

    async def guest(self, **changes: Any) -> Reservation:
        """Create a confirmed reservation for two at T1, tonight, for the whole evening."""
        return await self.environment.database.write(add_reservation, **changes)

    async def pass_of(self, reservation: Reservation) -> str:
        """Return the text of the guest's QR code."""
        return await self.environment.database.read(
            pass_text, self.environment.keyring, self.environment.name, reservation
        )

    async def now_of(self, reservation: Reservation) -> Reservation:
        """Return the current state of the reservation."""
        return await self.environment.database.read(get_reservation, reservation.id)

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query on the environment's database."""
        return await self.environment.database.read(lambda reader: list(reader.rows(sql)))

    async def other(self, name: str = "Porte 2", **kwargs: Any) -> "Door":
        """Create a second terminal in the same environment."""
        return await _door(self.environment, self.client, self.clock, name, **kwargs)


async def _door(
    environment: Environment,
    client: TestClient[web.Request, web.Application],
    clock: StoppedClock,
    name: str,
    **kwargs: Any,
) -> Door:
    terminal_id, token = await environment.database.write(issue_terminal, name, **kwargs)
    return Door(environment, client, clock, terminal_id, token)


@pytest.fixture(autouse=True)
def no_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent the box's jobs from changing reservations during a test."""

    async def nothing(_app: web.Application) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(application, "_background", lambda *_: nothing)


@pytest.fixture
def box(running: Running) -> Box:
    return running.box


@pytest.fixture
def client(running: Running) -> TestClient[web.Request, web.Application]:
    """The real application. The header `X-Device` says which device sends a request."""
    running.app._state[CALLER_OF] = lambda request: request.headers.get("X-Device", "one")
    return running.client


@pytest.fixture
async def door(box: Box, client, clock) -> Door:
    """The terminal `Porte 1` of the live environment, with every role, in French."""
    return await _door(box.live, client, clock, "Porte 1")


@pytest.fixture
async def test_door(box: Box, client, clock) -> Door:
    """The terminal `Porte 1` of the test environment."""
    return await _door(box.test, client, clock, "Porte 1")
