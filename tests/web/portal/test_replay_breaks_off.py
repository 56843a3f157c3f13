"""A replay that breaks off never looks as if it had come to its end."""

import asyncio

from appliance.actions.replay_deliveries import Progress, Selection
from web.portal.integrations import replays as replays_module
from web.portal.integrations.replays import Replays


async def test_an_accident_in_the_middle_is_told_as_what_stopped_it(box, monkeypatch, caplog):
    def break_off(_tx, _selection, progress):
        if progress is None:
            return Progress(500, 1000, 500)
        raise ValueError

    monkeypatch.setattr(replays_module, "replay_deliveries", break_off)
    replays = Replays(box.clock)
    replay = replays.start(box.test, Selection("an endpoint"), 1000)

    async with asyncio.timeout(60):
        while replay.runs:  # noqa: ASYNC110 - no hook for tests
            await asyncio.sleep(0.002)

    assert (replay.replayed, replay.percent) == (500, 50)
    assert replay.refusal is not None
    assert "replaying deliveries failed: ValueError" in caplog.text
    await replays.close()
