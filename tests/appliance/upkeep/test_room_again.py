"""A disk that is full and then cannot be asked is looked at until it has room."""

import asyncio

import pytest

from appliance.upkeep import life
from appliance.upkeep.life import Reserve


class Volume:
    """A ballast on a volume that fails as the test says, look by look."""

    was_released = True

    def __init__(self, *looks):
        self.looks = list(looks)
        self.made = 0

    def has_room_for_all(self):
        found = self.looks.pop(0)
        if isinstance(found, OSError):
            raise found
        return found

    def make(self):
        self.made += 1
        return True


@pytest.mark.parametrize(
    "looks",
    [
        (False, True),
        (OSError(5, "input/output error"), True),
        (False, OSError(30, "read-only file system"), OSError(30, "read-only"), True),
    ],
)
async def test_everything_is_taken_again_once_there_is_room(box, monkeypatch, looks):
    monkeypatch.setattr(life, "_LOOK_SECONDS", 0.0)
    volume = Volume(*looks)
    reserve = Reserve(box, volume)

    reserve.start()
    assert box.live.database.is_full
    async with asyncio.timeout(60):
        while box.live.database.is_full or box.test.database.is_full:  # noqa: ASYNC110
            await asyncio.sleep(0)

    assert (volume.looks, volume.made) == ([], 1)
    await reserve.close()
