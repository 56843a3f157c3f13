"""The live feed sends every change of tonight's list to every listener without a gap."""

import pytest

from appliance.database.database import ChangedBeside
from appliance.door.guest_pass import rotate_signing_key
from appliance.door.terminals import edit_terminal, revoke_terminal, terminal_mark
from appliance.reservations.change import accept, cancel
from appliance.reservations.create import grant
from appliance.reservations.rows import update_reservation
from tests.app.terminal_bridge.listening import listening
from tests.builders import a_booking, table_id
from tests.waiting import within


async def test_a_check_in_is_sent_to_every_other_terminal_with_the_new_totals(door):
    refused = await door.guest(table="T2", status="cancelled")
    guest = await door.guest(guests=3)
    there = await door.other()
    async with listening(there) as ear:
        first = ear.first
        assert (first.kind, first.data["evening"]) == ("totals", "2026-11-21")
        assert first.data["totals"]["expected"] == {"people": 3, "reservations": 1}

        await door.scan(await door.pass_of(refused))  # this change is not sent
        await door.scan(await door.pass_of(guest), arrivals=2, scanId="three-of-them")

        heard = await ear.next()
        _, evening = await there.call("GET", "/evening")
    assert heard.kind == "check-in"
    assert heard.data["reservation"] in evening["items"]
    for private in ("salma@", "123 457"):
        assert private not in str(heard.data)
    assert heard.data["totals"] == evening["totals"]
    assert (heard.data["admitted"], heard.data["terminalId"]) == (2, door.terminal_id)
    assert heard.data["scanId"] == "three-of-them"
    assert heard.data["firstCheckIn"]["terminal"] == "Porte 1"


@pytest.mark.parametrize(
    ("action", "status", "seen"),
    [(lambda tx, id_: cancel(tx, id_, actor="box"), "confirmed", {"status": "cancelled"}),
     (lambda tx, id_: accept(tx, id_, actor="box"), "requested", {"status": "confirmed"}),
     (lambda tx, id_: update_reservation(tx, id_, table_id=table_id("T3")), "confirmed",
      {"table": {"id": table_id("T3"), "name": "Terrasse 3", "number": "T3"}})],
)  # fmt: skip
async def test_every_kind_of_change_is_sent_to_the_feed(door, action, status, seen):
    guest = await door.guest(status=status)
    async with listening(door) as ear:
        await door.environment.database.write(action, guest.id)

        heard = await ear.next()
        assert heard.data["totals"] == (await door.call("GET", "/evening"))[1]["totals"]
    assert heard.kind == "change"
    assert heard.data["reservation"]["id"] == guest.id
    assert heard.data["reservation"].items() >= seen.items()


async def test_a_new_reservation_is_sent_to_the_feed_only_if_it_is_for_tonight(door):
    async with listening(door) as ear:
        await door.guest(date="2026-11-22")
        booking = a_booking(table_id=table_id("T2"))
        issued = await door.environment.database.write(
            grant, booking, source="partner", status="confirmed", actor="key:1"
        )

        heard = await ear.next()

    assert (heard.kind, heard.data["reservation"]["id"]) == ("change", issued.reservation_id)
    assert heard.data["totals"]["expected"] == {"people": 2, "reservations": 1}


async def test_an_undo_is_sent_to_the_feed(door):
    guest = await door.guest()
    await door.scan(await door.pass_of(guest), scanId="in")
    async with listening(door) as ear:
        await door.call("POST", "/scans/in/undo", {})

        heard = await ear.next()
    assert (heard.kind, heard.data["admitted"]) == ("change", -2)
    assert heard.data["reservation"]["checkedInAt"] is None
    assert heard.data["totals"]["arrived"] == {"people": 0, "reservations": 0}


async def test_a_revoked_terminal_is_disconnected_with_the_reason_and_the_others_stay(door):
    there = await door.other()
    text = await door.pass_of(await door.guest())
    async with listening(door) as here, listening(there) as ear:
        await door.environment.database.write(revoke_terminal, there.terminal_id)

        assert [(await ear.next()).kind, await ear.next()] == ["revoked", None]
        await door.scan(text)
        assert (await here.next()).kind == "check-in"


async def test_a_command_makes_every_terminal_reload_and_disconnects_revoked_ones(door):
    there = await door.other()
    async with listening(door) as here, listening(there) as ear:
        await door.environment.database.write(
            lambda tx: tx.execute(
                "UPDATE terminal SET revoked_at = 1 WHERE id = :id", {"id": there.terminal_id}
            )
        )

        door.environment.database.look_for_changes()

        assert (await here.next()).kind == "reset"
        assert [(await ear.next()).kind, (await ear.next()).kind] == ["reset", "revoked"]
        assert await ear.next() is None


async def test_heartbeats_advance_the_position_while_nothing_happens(door, monkeypatch):
    monkeypatch.setattr("terminal_bridge.api.live_feed.HEARTBEAT_SECONDS", 0.05)
    async with listening(door) as ear:
        first = ear.position
        await door.guest(date="2026-11-30")
        async with within("a heartbeat with a new position"):
            while (lines := await ear._block()) is not None:
                if door.environment.feed.position != first and f"id: {first}" not in lines:
                    break

    assert lines == [": still here", f"id: {door.environment.feed.position}"]


async def test_stopping_the_box_ends_every_stream_immediately(door):
    async with listening(door) as ear:
        door.environment.feed.close()

        assert await ear.next() is None
    headers = {"Authorization": f"Bearer {door.token}"}
    async with door.client.get("/terminal/v1/events", headers=headers) as response:
        assert await response.read() == b""


async def test_a_reconnecting_terminal_gets_what_it_missed_exactly_once(door):
    guests = [await door.guest(table=f"T{n}") for n in (1, 2, 3)]
    async with listening(door) as ear:
        await door.scan(await door.pass_of(guests[0]))
        position = (await ear.until("check-in")).position
    await door.scan(await door.pass_of(guests[1]))  # no terminal listens now

    async with listening(door, after=position) as ear:
        missed = [await ear.next(), await ear.next()]
        await door.scan(await door.pass_of(guests[2]))
        live = await ear.next()

    assert [heard.kind for heard in missed] == ["check-in", "totals"]
    assert missed[0].data["reservation"]["id"] == guests[1].id
    assert live.data["reservation"]["id"] == guests[2].id


@pytest.mark.parametrize("position", ["00000000-1", "nonsense", "-1", "", "0-" + "9" * 40])
async def test_a_terminal_with_a_position_from_before_a_restart_must_reload(door, position):
    async with listening(door, after=position or "0") as ear:
        assert (await ear.next()).kind == "reset"

    # A page cannot set the header.
    url = f"/terminal/v1/events?after={position or 0}"
    headers = {"Authorization": f"Bearer {door.token}"}
    async with door.client.get(url, headers=headers) as response:
        assert await response.content.readline() == b"event: reset\n"


async def test_terminals_reload_when_the_next_evening_begins(door):
    guest = await door.guest(date="2026-11-22")
    async with listening(door) as ear:
        door.clock.set("2026-11-22T06:00:00Z")

        await door.scan(await door.pass_of(guest))

        assert (await ear.next()).kind == "reset"


async def test_a_terminal_reduced_to_the_scan_role_gets_no_more_notes(door):
    there = await door.other()
    async with listening(door) as here, listening(there) as ear:
        seen = terminal_mark("Porte 2", "override")
        await door.environment.database.write(
            edit_terminal, there.terminal_id, seen, "Porte 2", "scan"
        )
        guest = await door.guest(notes="Allergie grave")
        await door.scan(await door.pass_of(guest))

        assert await ear.next() is None
        position = ear.position
        heard = await here.until("check-in")
        assert heard.data["reservation"]["notes"] == "Allergie grave"

    async with listening(there, after=position) as ear:
        heard = await ear.until("check-in")
        assert heard.data["reservation"]["id"] == guest.id
        assert heard.data["reservation"]["notes"] is None


@pytest.mark.parametrize("leaked", [False, True])
async def test_every_terminal_learns_of_a_new_signing_key_at_once_and_on_reconnecting(door, leaked):
    await door.pass_of(await door.guest())
    async with listening(door) as ear:
        position = ear.position

        await door.environment.database.write(
            rotate_signing_key, door.environment.keyring, leaked=leaked
        )

        assert (await ear.next()).kind == "reset"
    async with listening(door, position) as ear:
        assert (await ear.next()).kind == "reset"
    _, me = await door.call("GET", "/me")
    assert len(me["publicKeys"]) == (1 if leaked else 2)


async def test_changes_made_by_a_command_update_the_totals(door):
    environment = door.environment
    guest = await door.guest(guests=3)
    async with listening(door) as ear:
        # Change the database like a command: the feed is not notified.
        feed, environment.database._listeners = environment.database._listeners, []
        await environment.database.write(update_reservation, guest.id, guests=5)
        environment.database._listeners = feed
        environment.database._notify([ChangedBeside()])
        assert (await ear.next()).kind == "reset"

        await door.guest(table="T2", guests=2)

        assert (await ear.next()).data["totals"]["expected"]["people"] == 7
