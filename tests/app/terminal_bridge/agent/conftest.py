"""A bridge's desk connected to a real box through a client that a test can break."""

from dataclasses import dataclass

import pytest

from appliance.clock import newest_zone_database
from appliance.core.tokens import Tokens
from terminal_bridge.agent.agent import Agent, Link
from terminal_bridge.agent.client import Identity, NotPaired, OutOfReach, Refused
from terminal_bridge.agent.spool import open_spool

ZONES = newest_zone_database()


class Client:
    """Sends the protocol's calls to the box of the test, like `BoxClient`."""

    def __init__(self, door, identity):
        self.identity = identity
        self.door = door
        self.is_cut = False
        self.answers_get_lost = False

    async def me(self):
        return await self._call("GET", "/me")

    async def scan(self, body):
        return await self._call("POST", "/scans", body)

    async def snapshot(self):
        return await self._call("GET", "/snapshot")

    async def sync(self, scans, sent_at):
        body = {"scans": scans, "sentAt": sent_at}
        return (await self._call("POST", "/sync", body))["results"]

    async def _call(self, method, path, body=None):
        if self.is_cut:
            raise OutOfReach("cut")
        status, answer = await self.door.call(method, path, body)
        if self.answers_get_lost or status >= 500:
            raise OutOfReach("lost")
        if status == 401:
            raise NotPaired
        if status >= 400:
            raise Refused(answer["error_en"], answer["error"])
        return answer


@dataclass
class Bridge:
    """A desk, its link and its client."""

    desk: Agent
    link: Link
    client: Client
    folder: object

    async def reach(self):
        """Run one round of the link. Return whether the box was reached and has everything."""
        return await self.link._try()

    async def restart(self):
        """Restart as after `kill -9`: only what is on disk is left."""
        await self.desk.spool.close()
        fresh = await a_bridge(self.folder, self.client.door, self.client)
        self.desk, self.link = fresh.desk, fresh.link


async def a_bridge(folder, door, client=None):
    _, me = await door.call("GET", "/me")
    client = client or Client(door, Identity("https://box.example").introduced(me))
    desk = Agent(await open_spool(folder / "spool.db"), client, door.clock, Tokens(), ZONES)
    await desk.load()
    return Bridge(desk, Link(desk, folder), client, folder)


@pytest.fixture
async def bridge(tmp_path, door):
    """A bridge that has connected to its box."""
    folder = tmp_path / "bridge"
    folder.mkdir()
    made = await a_bridge(folder, door)
    yield made
    await made.desk.spool.close()
