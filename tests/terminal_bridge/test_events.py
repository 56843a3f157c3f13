"""The live feed: all that changes tonight's list, to everybody who listens, without a gap."""

import asyncio
import time

import pytest

from appliance.actions.answer_request import accept
from appliance.actions.cancel import cancel
from appliance.actions.grant import grant
from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.revoke_terminal import revoke_terminal
from appliance.store.reservations import update_reservation
from tests.builders import a_booking, table_id
from tests.terminal_bridge.listening import listening


async def test_a_check_in_is_heard_at_every_other_door_with_the_new_totals(door):
    guest = await door.guest(guests=3)
    there = await door.other()
    async with listening(there) as ear:
        assert (await ear.next()).kind == "totals"

        await door.scan(await door.pass_of(guest), arrivals=2, scanId="three-of-them")

        heard = await ear.next()
        _, evening = await there.call("GET", "/evening")
    assert heard.kind == "check-in"
    assert heard.data["reservation"] == evening["items"][0]
    assert heard.data["totals"] == evening["totals"]
    assert (heard.data["admitted"], heard.data["terminalId"]) == (2, door.terminal_id)
    assert heard.data["scanId"] == "three-of-them"
    assert heard.data["firstCheckIn"]["terminal"] == "Porte 1"


async def test_the_stream_begins_with_the_totals_of_tonight(door):
    await door.guest(guests=4)

    async with listening(door) as ear:
        first = await ear.next()

    assert first.kind == "totals"
    assert first.data["evening"] == "2026-11-21"
    assert first.data["totals"]["expected"] == {"people": 4, "reservations": 1}


def cancelled(tx, guest):
    cancel(tx, guest.id, actor="box")


def accepted(tx, guest):
    accept(tx, guest.id, actor="box")


def moved_to_another_table(tx, guest):
    update_reservation(tx, guest.id, table_id=table_id("T3"))


def moved_to_another_evening(tx, guest):
    update_reservation(tx, guest.id, date="2026-11-25")


@pytest.mark.parametrize(
    ("action", "status", "seen"),
    [
        (cancelled, "confirmed", {"status": "cancelled"}),
        (accepted, "requested", {"status": "confirmed"}),
        (
            moved_to_another_table,
            "confirmed",
            {"table": {"id": table_id("T3"), "name": "Terrasse 3", "number": "T3"}},
        ),
        (moved_to_another_evening, "confirmed", {"date": "2026-11-25"}),
    ],
)
async def test_a_change_is_heard_whatever_action_caused_it(door, action, status, seen):
    guest = await door.guest(status=status)
    async with listening(door) as ear:
        await ear.next()

        await door.environment.database.write(action, guest)

        heard = await ear.next()
    assert heard.kind == "change"
    assert heard.data["reservation"]["id"] == guest.id
    assert heard.data["reservation"].items() >= seen.items()


async def test_a_new_reservation_for_tonight_is_heard_and_one_for_tomorrow_is_not(door):
    async with listening(door) as ear:
        await ear.next()
        await door.guest(date="2026-11-22")
        booking = a_booking(table_id=table_id("T2"))
        issued = await door.environment.database.write(
            grant, booking, source="partner", status="confirmed", actor="key:1"
        )

        heard = await ear.next()

    assert (heard.kind, heard.data["reservation"]["id"]) == ("change", issued.reservation_id)
    assert heard.data["totals"]["expected"] == {"people": 2, "reservations": 1}


async def test_an_undo_is_heard(door):
    guest = await door.guest()
    await door.scan(await door.pass_of(guest), scanId="in")
    async with listening(door) as ear:
        await ear.next()

        await door.call("POST", "/scans/in/undo", {})

        heard = await ear.next()
    assert (heard.kind, heard.data["admitted"]) == ("change", -2)
    assert heard.data["reservation"]["checkedInAt"] is None
    assert heard.data["totals"]["arrived"] == {"people": 0, "reservations": 0}


async def test_a_refused_scan_is_not_news(door):
    cancelled_guest = await door.guest(table="T2", status="cancelled")
    guest = await door.guest()
    async with listening(door) as ear:
        await ear.next()
        await door.scan(await door.pass_of(cancelled_guest))
        await door.scan(await door.pass_of(guest))

        assert (await ear.next()).data["reservation"]["id"] == guest.id


async def test_a_terminal_that_is_revoked_hears_that_and_nothing_more(door):
    there = await door.other()
    async with listening(there) as ear:
        await ear.next()

        await door.environment.database.write(revoke_terminal, there.terminal_id)

        assert (await ear.next()).kind == "revoked"
        assert await ear.next() is None


async def test_revoking_one_terminal_leaves_the_others_listening(door):
    there = await door.other()
    guest = await door.guest()
    async with listening(door) as ear:
        await ear.next()
        await door.environment.database.write(revoke_terminal, there.terminal_id)

        await door.scan(await door.pass_of(guest))

        assert (await ear.next()).kind == "check-in"


async def test_a_command_beside_the_box_makes_everybody_load_again_and_ends_whom_it_revoked(door):
    there = await door.other()
    async with listening(door) as here, listening(there) as ear:
        await here.next()
        await ear.next()
        await door.environment.database.write(
            lambda tx: tx.execute(
                "UPDATE terminal SET revoked_at = 1 WHERE id = :id", {"id": there.terminal_id}
            )
        )

        door.environment.database.look_again()

        assert (await here.next()).kind == "reset"
        assert [(await ear.next()).kind, (await ear.next()).kind] == ["reset", "revoked"]
        assert await ear.next() is None


async def test_a_terminal_that_may_not_search_hears_no_notes(door):
    there = await door.other(role="scan")
    guest = await door.guest()
    async with listening(there) as ear:
        await ear.next()
        await door.scan(await door.pass_of(guest))

        heard = await ear.next()

    assert heard.data["reservation"]["notes"] is None
    assert heard.data["reservation"]["customerFirstName"] == "Salma"


async def test_the_feed_tells_no_contact_and_no_family_name(door):
    guest = await door.guest()
    async with listening(door) as ear:
        await ear.next()
        await door.scan(await door.pass_of(guest))

        told = str((await ear.next()).data)

    for private in ("Idrissi", "salma@", "123 457"):
        assert private not in told


async def test_a_heartbeat_moves_the_position_on_while_nothing_happens(door, monkeypatch):
    monkeypatch.setattr("terminal_bridge.events.HEARTBEAT_SECONDS", 0.05)
    async with listening(door) as ear:
        first = (await ear.next()).position
        await door.guest(date="2026-11-30")
        async with asyncio.timeout(60):
            while (lines := await ear._block()) is not None:
                if door.environment.feed.position != first and f"id: {first}" not in lines:
                    break

    assert lines == [": still here", f"id: {door.environment.feed.position}"]


async def test_nobody_is_told_and_nothing_is_read_while_nobody_listens(door, monkeypatch):
    async def refuse(*_args):
        raise AssertionError("the feed read rows for nobody")

    guest = await door.guest()
    text = await door.pass_of(guest)
    async with listening(door) as ear:
        await ear.next()
    feed = door.environment.feed
    async with asyncio.timeout(60):  # the box notices at its next word that nobody is there
        while feed.listeners:
            await door.guest(date="2026-12-01", table="T2", slot=slot_of(feed.position))
            await asyncio.sleep(0.1)
    monkeypatch.setattr(door.environment.feed._database, "read", refuse)

    assert (await door.scan(text))["result"] == "checked_in"
    assert feed._telling is None or feed._telling.done()


def slot_of(position: str) -> str:
    return f"{int(position.partition('-')[2]) % 24:02d}:00"


async def test_a_stop_ends_every_stream_at_once(door):
    async with listening(door) as ear:
        await ear.next()
        asked = time.monotonic()

        door.environment.feed.close()

        assert await ear.next() is None
        assert time.monotonic() - asked < 5
    headers = {"Authorization": f"Bearer {door.token}"}
    async with door.client.get("/terminal/v1/events", headers=headers) as response:
        assert await response.read() == b""


async def test_the_stream_of_the_real_application_has_the_headers_of_every_answer(running):
    _, token = await running.live.database.write(issue_terminal, "Porte 1")
    headers = {"Authorization": f"Bearer {token}"}
    url = "/terminal/v1/events"

    async with running.client.get(url, headers=headers) as response:
        first = await response.content.readline()
        given = response.headers
    async with running.client.head(url, headers=headers) as response:
        asked = response.status

    assert (first, asked) == (b"event: totals\n", 200)
    assert given["Cache-Control"] == "no-store"
    assert given["X-Content-Type-Options"] == "nosniff"
    assert given["Content-Type"] == "text/event-stream; charset=utf-8"
