"""A door of the real application over a furnished box, and terminals to speak with."""

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
    """Calls of one terminal to one environment, and the guests who may come."""

    environment: Environment
    client: TestClient[web.Request, web.Application]
    clock: StoppedClock
    terminal_id: str
    token: str
    _numbers: count = field(default_factory=lambda: count(1))

    async def call(
        self, method: str, path: str, body: Any = None, **kwargs: Any
    ) -> tuple[int, dict[str, Any]]:
        """A call below the terminal's base address: (status, decoded body); None drops a header."""
        headers = {"Authorization": f"Bearer {self.token}"} | kwargs.pop("headers", {})
        headers = {name: value for name, value in headers.items() if value is not None}
        url = f"{self.environment.prefix}/terminal/v1{path}"
        async with self.client.request(
            method, url, json=body, headers=headers, **kwargs
        ) as response:
            return response.status, await response.json()

    async def scan(self, code: str, **members: Any) -> dict[str, Any]:
        """The verdict on a code, under a fresh scanId unless one is given."""
        body = {"scanId": f"scan-{next(self._numbers)}", "code": code, **members}
        status, verdict = await self.call("POST", "/scans", body)
        assert status == 200, verdict
        return verdict

    async def guest(self, **changes: Any) -> Reservation:
        """A confirmed reservation: two guests at T1 tonight for the whole evening."""
        return await self.environment.database.write(add_reservation, **changes)

    async def pass_of(self, reservation: Reservation) -> str:
        """The text of the guest's QR code."""
        return await self.environment.database.read(
            pass_text, self.environment.keyring, self.environment.name, reservation
        )

    async def now_of(self, reservation: Reservation) -> Reservation:
        """The reservation as it is now."""
        return await self.environment.database.read(get_reservation, reservation.id)

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What the environment's database answers."""
        return await self.environment.database.read(lambda reader: list(reader.rows(sql)))

    async def other(self, name: str = "Porte 2", **kwargs: Any) -> "Door":
        """A second terminal of the same environment."""
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
    """Let no job of the box complete or forget a reservation beside the test."""

    async def nothing(_app: web.Application) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(application, "_background", lambda *_: nothing)


@pytest.fixture
def box(running: Running) -> Box:
    return running.box


@pytest.fixture
def client(running: Running) -> TestClient[web.Request, web.Application]:
    """The real application, which a test tells by a header from which device it is called."""
    running.app._state[CALLER_OF] = lambda request: request.headers.get("X-Device", "one")
    return running.client


@pytest.fixture
async def door(box: Box, client, clock) -> Door:
    """The terminal `Porte 1` of the live environment, which may do everything, in French."""
    return await _door(box.live, client, clock, "Porte 1")


@pytest.fixture
async def test_door(box: Box, client, clock) -> Door:
    """The same in the test environment."""
    return await _door(box.test, client, clock, "Porte 1")
