"""A board whose session is ended from another browser closes at once, not at its next heartbeat."""

import asyncio

from appliance.actions.sign_in import start_session
from tests.web.portal.people import Person, a_person


async def test_everywhere_else_closes_the_boards_that_stand_open_there(running, monkeypatch):
    monkeypatch.setattr("web.portal.tonight.events._HEARTBEAT_SECONDS", 3600.0)
    here = await a_person(running, "host")
    session = await running.live.database.write(start_session, here.id, None, "Safari, iPhone")
    there = Person(here.id, running, session)
    async with (
        running.client.get("/portal/tonight/events", headers=here.headers) as mine,
        running.client.get("/portal/tonight/events", headers=there.headers) as theirs,
    ):
        await mine.content.readuntil(b"\n\n")
        async with asyncio.timeout(60):
            await theirs.content.readuntil(b"\n\n")

            await here.post("/portal/account/sessions/end-others")

            assert b"event: revoked" in await theirs.content.read()
        assert not mine.content.is_eof()
        mine.close()
