"""The certificate follows the venue's name while the box serves."""

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp.test_utils import TestClient, TestServer

from appliance.scheduler import Scheduler
from appliance.tls.authority import Names, names_in
from appliance.tls.certificates import LEAF, Certificates, read_certificate
from appliance.venue.edit import edit_venue
from appliance.venue.model import fingerprint, get_venue
from tests.application import application_of
from tests.clocks import doubt
from tests.unit.jobs.keeping import Timer
from tests.waiting import until
from web.listeners import renewal


@pytest.fixture
def certificates(box, tmp_path, clock):
    """The certificates of a box with one address."""
    database = box.live.database

    def wanted():
        return Names(("localhost", f"{database.peek(get_venue).slug}.local"), ("127.0.0.1",))

    found = Certificates(tmp_path / "tls", clock, lambda: "Riad", wanted, lambda: False)
    found.prepare()
    return found


@asynccontextmanager
async def looked_after(certificates, box):
    scheduler = Scheduler(box.clock, Timer())
    scheduler.start(renewal(certificates, box.live.database))
    await scheduler.settle()
    try:
        yield scheduler
    finally:
        await scheduler.close()


async def rename(box, **changes):
    def edit(tx):
        venue = get_venue(tx)
        edit_venue(tx, fingerprint(venue), replace(venue, **changes))

    await box.live.database.write(edit)


def dns(certificates):
    return names_in(read_certificate(certificates.folder / LEAF)).dns


async def test_a_renamed_venue_gets_its_certificate_immediately(box, certificates):
    async with looked_after(certificates, box) as scheduler:
        assert dns(certificates) == ("localhost", "riad-atlas.local")
        await rename(box, slug="dar-zitoun")
        await scheduler.settle()
        assert dns(certificates) == ("dar-zitoun.local", "localhost")


async def test_nothing_is_signed_with_a_doubtful_clock_or_after_the_authority_expires(
    box, certificates
):
    doubt(box.clock)
    async with looked_after(certificates, box) as scheduler:
        await rename(box, slug="dar-zitoun")
        await scheduler.settle()
        assert dns(certificates) == ("localhost", "riad-atlas.local")
    box.clock.believe(box.clock.machine.now())
    async with looked_after(certificates, box) as scheduler:
        assert dns(certificates) == ("dar-zitoun.local", "localhost")

    await rename(box, slug="riad-atlas")

    assert dns(certificates) == ("dar-zitoun.local", "localhost")


@pytest.mark.parametrize("path", [None, "/trust/ca.crt", "/trust/ca.mobileconfig"])
async def test_the_authority_is_kept_once_a_device_has_downloaded_it(box, certificates, path):
    app = application_of(box, certificates)
    before = certificates.fingerprint()
    async with TestClient(TestServer(app)) as client:
        for page in filter(None, ("/trust", path)):
            async with client.get(page) as response:
                assert response.status == 200

        await rename(box, slug="dar-zitoun")
        if path is None:
            await until(lambda: "dar-zitoun.local" in dns(certificates))

    assert (certificates.fingerprint() == before) == (path is not None)
    assert ("dar-zitoun.local" in dns(certificates)) == (path is None)
