"""Eight terminals at once: each party is admitted once, announced once, and known to all."""

import random

import pytest

from tests.journeys.box_process import BoxProcess, found_box
from tests.terminal_bridge.many_doors import complaints, expect, storm


@pytest.mark.proves("I6", "G2")
async def test_eight_terminals_with_retries_admit_each_party_once_and_hear_the_same(tmp_path):
    seed = random.randrange(10**6)
    print(f"\nseed {seed}")
    crowd = expect(found_box(tmp_path).data, 240, seed)

    with BoxProcess(crowd.data, log=tmp_path / "box.log") as box:
        evening = await storm(crowd, box.address, 600, seed)

        assert complaints(crowd, evening) == []
        assert box.stop() < 10
    assert box.complaints() == ""
