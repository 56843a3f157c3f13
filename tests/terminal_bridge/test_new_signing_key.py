"""A new key signs guest passes: every door hears of it before a guest shows such a pass."""

import pytest

from appliance.actions.rotate_signing_key import rotate_signing_key
from tests.terminal_bridge.listening import listening


@pytest.mark.parametrize("leaked", [False, True])
async def test_every_door_looks_again_at_once(door, leaked):
    await door.pass_of(await door.guest())
    async with listening(door) as ear:
        assert (await ear.next()).kind == "totals"

        await door.environment.database.write(
            rotate_signing_key, door.environment.keyring, leaked=leaked
        )

        assert (await ear.next()).kind == "reset"
    _, me = await door.call("GET", "/me")
    assert len(me["publicKeys"]) == (1 if leaked else 2)


async def test_who_was_away_meanwhile_looks_again_too(door):
    async with listening(door) as ear:
        position = (await ear.next()).position
    await door.environment.database.write(rotate_signing_key, door.environment.keyring)

    async with listening(door, position) as ear:
        assert (await ear.next()).kind == "reset"
