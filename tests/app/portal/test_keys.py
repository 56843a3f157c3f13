"""Key pages: a key is shown once, rotated within its lineage, and revoked immediately."""

import asyncio
import logging
import re

import pytest

from appliance.api_keys import list_keys
from tests.app.portal.integrations import a_form
from tests.app.portal.people import Person
from tests.builders import a_body
from tests.conftest import Running
from tests.waiting import until

ROOM = "/portal/integrations"
SECRET = re.compile(r"svc_(?:live|test)_[0-9a-f]{48}")


async def make_key(person: Person, prefix: str = "", **fields: str) -> tuple[str, str]:
    """Create a key in the portal. Return the URL of its page and the key."""
    form = await a_form(person, f"{prefix}{ROOM}/keys/new")
    sent = {"name": "Concierge", "access": "all", **form, **fields}
    status, _, headers = await person.post(f"{prefix}{ROOM}/keys", sent)
    assert status == 303
    _, text, _ = await person.get(headers["Location"])
    found = SECRET.search(text)
    assert found is not None
    return headers["Location"], found.group(0)


@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_a_new_key_works_in_its_environment_and_is_shown_once(
    running, prefix, caplog, manager
):
    with caplog.at_level(logging.DEBUG):
        page, key = await make_key(manager, prefix)

    allowed, _, _ = await running.call("GET", f"{prefix}/v1/venue", key=key)
    _, again, headers = await manager.get(page)
    _, overview, _ = await manager.get(f"{prefix}{ROOM}")

    assert allowed == 200
    assert headers["Cache-Control"] == "no-store"
    assert key not in page + again + overview
    assert key not in caplog.text
    assert key[-4:] in again
    assert key[-4:] in overview


@pytest.mark.parametrize(("seconds", "is_shown"), [(0, True), (121, False)])
async def test_a_secret_can_be_seen_only_in_its_session_and_for_some_minutes(
    running, manager, owner, seconds, is_shown
):
    form = await a_form(manager, f"{ROOM}/keys/new")
    _, _, headers = await manager.post(f"{ROOM}/keys", {"name": "A", "access": "all", **form})
    running.clock.advance(seconds)

    _, of_another, _ = await owner.get(headers["Location"])
    _, of_its_maker, _ = await manager.get(headers["Location"])

    assert SECRET.search(of_another) is None
    assert (SECRET.search(of_its_maker) is not None) is is_shown


async def test_a_revoked_key_is_refused_at_its_next_call(running, manager):
    page, key = await make_key(manager)
    await manager.post(f"{page}/revoke")
    status, body, _ = await running.call("GET", "/v1/venue", key=key)
    assert (status, body["code"]) == (401, "KEY_REVOKED")


async def test_a_successor_inherits_and_the_old_key_works_until_it_is_revoked(running, manager):
    page, old = await make_key(manager)
    _, made, _ = await running.call("POST", "/v1/reservations", key=old, json=a_body())

    form = await a_form(manager, page)
    _, _, headers = await manager.post(f"{page}/rotate", {**form, "old": "stays"})
    _, text, _ = await manager.get(headers["Location"])
    new = SECRET.search(text).group(0)
    running.clock.advance(25 * 3600)

    path = f"/v1/reservations/{made['serviceReservationId']}"
    assert (await running.call("DELETE", path, key=new))[0] == 200
    assert (await running.call("GET", "/v1/venue", key=old))[0] == 200


async def test_a_stale_tab_cannot_create_a_second_successor(running, manager):
    page, _ = await make_key(manager)
    stale = await a_form(manager, page)
    await manager.post(f"{page}/rotate", {**await a_form(manager, page), "old": "stays"})
    before = running.live.database.peek(list_keys)

    status, text, _ = await manager.post(f"{page}/rotate", {**stale, "old": "ends"})

    assert (status, "nothing was overwritten" in text) == (409, True)
    assert running.live.database.peek(list_keys) == before


async def test_the_end_of_a_key_can_be_moved_earlier_but_not_later(running, manager):
    page, old = await make_key(manager)
    for choice in ("ends", "ends"):
        form = await a_form(manager, page)
        await manager.post(f"{page}/rotate", {**form, "old": choice})
        running.clock.advance(3600)
    ends = [k.expires_at for k in running.live.database.peek(list_keys) if k.expires_at]

    await manager.post(f"{page}/revoke")

    assert len(ends) == 1
    assert ends[0] - running.clock.now() == 22 * 3600 * 1000
    assert (await running.call("GET", "/v1/venue", key=old))[0] == 401


async def noted(running: Running) -> None:
    """Wait until the use of a key is committed. The request itself does not wait for it."""
    await asyncio.sleep(0.01)
    await until(lambda: not running.live.database.waiting, "the commit of a key's use")


async def test_the_last_use_of_a_key_is_stored_at_most_once_a_minute(running, manager):
    page, key = await make_key(manager)
    await running.call("GET", "/v1/venue", key=key)
    await noted(running)
    commits = running.live.database.commits

    for _ in range(9):
        await running.call("GET", "/v1/venue", key=key)
    assert running.live.database.commits == commits

    running.clock.advance(61)
    await running.call("GET", "/v1/venue", key=key)
    await noted(running)
    [used] = [k for k in running.live.database.peek(list_keys) if k.id == page.rpartition("/")[2]]
    assert used.last_used_at == running.clock.now()
