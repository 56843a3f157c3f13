"""A terminal that reads the box's server-sent events one by one."""

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.waiting import within


@dataclass
class Heard:
    """One event: its type, id and data, and its page in a shared stream."""

    kind: str
    position: str
    data: dict[str, Any] = field(default_factory=dict)
    to: str = ""


class Ear:
    """The events of one stream, in order."""

    def __init__(self, response) -> None:
        self.response = response
        self.position = ""
        self.first: Heard | None = None

    async def next(self) -> Heard | None:
        """Return the next event, or None at the end of the stream."""
        async with within("an event of the stream"):
            while True:
                lines = await self._block()
                if lines is None:
                    return None
                members = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
                self.position = members.get("id", self.position)
                if "event" in members:
                    data = json.loads(members["data"])
                    return Heard(members["event"], self.position, data)
                if "data" in members:  # the shared stream of a browser's pages
                    told = json.loads(members["data"])
                    return Heard(told["kind"], told["id"], told["data"], told["to"])

    async def until(self, kind: str) -> Heard:
        """Return the next event of this type and skip those before it."""
        while (heard := await self.next()) is not None:
            if heard.kind == kind:
                return heard
        raise AssertionError(f"the stream ended without a {kind}")

    async def _block(self) -> list[str] | None:
        lines: list[str] = []
        while True:
            line = (await self.response.content.readline()).decode()
            if not line:
                return None
            if line == "\n":
                return lines
            lines.append(line.rstrip("\n"))


@asynccontextmanager
async def listening(door, after: str | None = None):
    """Open a stream of this terminal and skip its first event, or start `after` a position."""
    headers = {"Authorization": f"Bearer {door.token}"}
    if after is not None:
        headers["Last-Event-ID"] = after
    url = f"{door.environment.prefix}/terminal/v1/events"
    async with door.client.get(url, headers=headers) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        ear = Ear(response)
        if after is None:
            ear.first = await ear.next()
        yield ear
