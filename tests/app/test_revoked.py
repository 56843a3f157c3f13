"""Revoked access is refused, even during a request and after clock changes."""

import asyncio
import json

import pytest
from aiohttp.web import BaseRequest

from appliance.api_keys import list_keys, revoke_key
from appliance.database.integrity import session
from appliance.door.terminals import issue_terminal, revoke_terminal
from appliance.staff.accounts import change_role, disable_staff
from appliance.staff.model import list_staff
from appliance.staff.sign_in import change_password
from tests.app.portal.people import a_person
from tests.builders import a_body
from tests.clocks import StoppedClock


@pytest.fixture
def withheld(monkeypatch):
    """Return `withheld(body, act)`: a body that calls `act()` before its last part."""
    waited_for, read = asyncio.Event(), BaseRequest.read

    async def read_slowly(request):
        waited_for.set()
        return await read(request)

    monkeypatch.setattr(BaseRequest, "read", read_slowly)

    async def send(body, act):
        yield body[:1]
        await waited_for.wait()
        await act()
        yield body[1:]

    return send


async def test_a_key_revoked_during_its_request_books_nothing(running, withheld):
    database = running.live.database
    [key] = [k for k in database.peek(list_keys) if k.revoked_at is None]
    body = json.dumps(a_body()).encode()

    status, answer, _ = await running.call(
        "POST", "/v1/reservations", data=withheld(body, lambda: database.write(revoke_key, key.id))
    )

    assert (status, answer["code"]) == (401, "KEY_REVOKED")
    assert database.peek(lambda reader: reader.value("SELECT count(*) FROM reservation")) == 0


async def test_a_terminal_revoked_during_its_request_decides_no_scan(running, withheld):
    database = running.live.database
    terminal_id, token = await database.write(issue_terminal, "Porte")
    body = json.dumps({"scanId": "scan-1", "code": "SVC-7F3K"}).encode()

    async with running.client.post(
        "/terminal/v1/scans",
        data=withheld(body, lambda: database.write(revoke_terminal, terminal_id, actor="console")),
        headers={"Authorization": f"Bearer {token}"},
    ) as response:
        answer = await response.json()

    assert (response.status, answer["code"]) == (401, "KEY_REVOKED")
    assert database.peek(lambda reader: reader.value("SELECT count(*) FROM scan_log")) == 0


async def _sent_away(running, person):
    await running.live.database.write(disable_staff, person.id)


async def _signed_out(running, person):
    await running.live.database.write(change_password, person.id, "another")


async def _made_less(running, person):
    await running.live.database.write(change_role, person.id, "owner", "host")


@pytest.mark.parametrize("act", [_sent_away, _signed_out, _made_less])
async def test_an_owner_demoted_during_the_request_cannot_invite(running, withheld, act):
    await a_person(running, "owner", "Hind")
    person = await a_person(running, "owner", "Yasmine")
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    status, _, _ = await person.post(
        "/portal/people", withheld(b"name=Mallory&role=owner", lambda: act(running, person)), **form
    )

    assert status == 403
    assert {p.name for p in running.live.database.peek(list_staff)} == {"Hind", "Yasmine"}


def revoke_beside(running, key_id, instant):
    """Run `venuebox key revoke` while the machine's clock shows this time."""
    database, box = running.live.database, running.box
    with session(database.path, StoppedClock(instant), box.tokens, box.zones) as tx:
        assert revoke_key(tx, key_id)
    running.box.look_for_changes()


@pytest.fixture
def key(running):
    """The live partner's key."""
    return running.live.database.peek(list_keys)[0]


async def refusal(running):
    status, body, _ = await running.call("GET", "/v1/venue")
    return status, body.get("code")


@pytest.mark.parametrize("instant", ["2027-11-21T19:00:00Z", "2026-11-21T22:00:00Z"])
async def test_a_key_revoked_with_a_clock_set_ahead_is_refused_immediately(running, key, instant):
    revoke_beside(running, key.id, instant)
    assert await refusal(running) == (401, "KEY_REVOKED")


async def test_a_revoked_key_is_refused_even_after_the_clock_is_set_back(running, key):
    assert (await refusal(running))[0] == 200
    await running.live.database.write(revoke_key, key.id)
    assert await refusal(running) == (401, "KEY_REVOKED")
    running.clock.set("2025-11-21T19:00:00Z")
    assert await refusal(running) == (401, "KEY_REVOKED")
