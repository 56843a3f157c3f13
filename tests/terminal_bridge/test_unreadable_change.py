"""A change that cannot be read is not passed over: who listens loads the evening anew."""

import apsw
import pytest

from tests.terminal_bridge.listening import listening


@pytest.mark.parametrize("error", [apsw.IOError, apsw.CorruptError, ValueError])
async def test_who_listens_starts_anew_where_what_changed_cannot_be_read(door, monkeypatch, error):
    feed = door.environment.feed
    sound, spoiled = feed._describe, True

    def describe(*args):
        nonlocal spoiled
        if spoiled:
            spoiled = False
            raise error("not to be read")
        return sound(*args)

    async with listening(door) as ear:
        assert (await ear.next()).kind == "totals"
        monkeypatch.setattr(feed, "_describe", describe)

        await door.guest(table="T1")

        assert (await ear.next()).kind == "reset"
        guest = await door.guest(table="T2")
        assert (await ear.next()).data["reservation"]["id"] == guest.id
