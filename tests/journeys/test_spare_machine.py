"""A backup restored on a second machine while the original box is running."""

import asyncio
import os

import pytest
from zeroconf.asyncio import AsyncZeroconf

from appliance.backup.recovery_key import find_recovery_key
from appliance.core.data_directory import DataDirectory
from appliance.database.integrity import describe_venue
from tests.journeys.box_process import BoxProcess, found_box, venuebox
from tests.namespaces import Venue, may_build_a_venue, within
from web.mdns import SERVICE, service_name

__test__ = may_build_a_venue()
SPARE = "192.168.77.30"
PATIENCE = 60.0


@pytest.fixture
def venue():
    with Venue(f"vbs{os.getpid() % 10**6}") as built:
        yield built


def wait_until_announced(venue, founded):
    """Wait until the box has announced itself on the network, some time after it is ready."""
    venue_id = describe_venue(founded.data / "live.db")[2]

    async def look():
        async with AsyncZeroconf(interfaces=[Venue.PHONE]) as phone, asyncio.timeout(PATIENCE):
            while not await phone.async_get_service_info(SERVICE, service_name(venue_id)):
                pass

    within(venue.phone, asyncio.run, look())


def test_a_second_box_of_the_same_venue_does_not_serve(venue, tmp_path):
    founded = found_box(tmp_path)
    venuebox("backup", data=founded.data)
    [backup] = (founded.data / "backups").iterdir()
    key = find_recovery_key(DataDirectory(founded.data)).text
    venuebox("restore", backup, "--key", key, data=tmp_path / "spare")
    old, new = (
        BoxProcess(tmp_path / name, log=tmp_path / f"{name}.log",
                   wrapper=("ip", "netns", "exec", network))
        for name, network in (("box", venue.box), ("spare", venue.add_machine("t", SPARE)))
    )  # fmt: skip

    def start(box, *argv):
        box.spawn("--data", str(box.data), *argv)

    try:
        start(old)
        old.wait_until_ready()
        wait_until_announced(venue, founded)
        start(new)
        assert new.wait(PATIENCE) == 1
        assert f"https://{Venue.BOX}:8443" in new.complaints()
        start(new, "--force")
        new.wait_until_ready()
        new.stop()

        old.stop()
        start(new)
        new.wait_until_ready()
        wait_until_announced(venue, founded)
        start(old)
        assert old.wait(PATIENCE) == 1
    finally:
        old.kill()
        new.kill()
