"""A terminal that may do less from now on hears less from now on."""

from appliance.actions.edit_terminal import edit_terminal, terminal_mark
from appliance.live.change import Change
from appliance.live.listener import Listener
from appliance.store.terminals import update_terminal
from tests.terminal_bridge.listening import listening


async def lower(door, there):
    await door.environment.database.write(
        edit_terminal,
        there.terminal_id,
        terminal_mark("Porte 2", "override"),
        "Porte 2",
        "scan",
    )


async def test_a_terminal_lowered_to_scan_hears_no_note_from_then_on(door):
    there = await door.other()
    async with listening(there) as ear:
        assert (await ear.until("totals")).kind == "totals"
        await lower(door, there)
        guest = await door.guest(notes="Allergie grave")
        await door.scan(await door.pass_of(guest))

        assert await ear.next() is None
        position = ear.position

    async with listening(there, after=position) as ear:
        heard = await ear.until("check-in")
        assert heard.data["reservation"]["id"] == guest.id
        assert heard.data["reservation"]["notes"] is None


async def test_what_waits_for_somebody_who_is_sent_back_is_not_told():
    listener = Listener("Porte 2", lambda _: True)
    listener.tell([Change("run-1", "change")])

    listener.drop()
    listener.tell([Change("run-2", "change")])

    assert await listener.take(1) == []
    assert listener.over.done()


async def test_a_role_that_a_command_beside_the_box_changed_ends_the_stream_too(door):
    there = await door.other()
    async with listening(door) as here, listening(there) as ear:
        await here.next()
        await ear.next()
        await door.environment.database.write(update_terminal, there.terminal_id, "Porte 2", "scan")

        door.environment.database.look_again()

        assert await ear.next() is None
        assert (await here.next()).kind == "reset"


async def test_the_others_listen_on(door):
    there = await door.other()
    async with listening(door) as here:
        await here.until("totals")
        await lower(door, there)
        guest = await door.guest(notes="Allergie grave")
        await door.scan(await door.pass_of(guest))

        assert (await here.until("check-in")).data["reservation"]["notes"] == "Allergie grave"
