"""The job that obtains a public certificate, and the box's answer to HTTP-01."""

from contextlib import asynccontextmanager

import pytest

from appliance.core.settings import AcmeSettings, ServerSettings, Settings
from appliance.scheduler import Scheduler
from appliance.tls.acme import Acme, read_state
from appliance.tls.authority import Names
from appliance.tls.certificates import AcmeError, Certificates
from tests.clocks import doubt
from tests.unit.jobs.keeping import Timer

NAME = "box.example"
MINUTE = 60
SETTINGS = Settings(
    server=ServerSettings(app_url=f"https://{NAME}"),
    acme=AcmeSettings(directory="https://authority.example/dir", agree_terms=True),
)


@pytest.fixture
def certificates(tmp_path, clock):
    names = Names(("localhost",), ("127.0.0.1",))
    found = Certificates(tmp_path / "tls", clock, lambda: "Riad", lambda: names, lambda: False)
    found.prepare()
    return found


@pytest.fixture
def orders(monkeypatch):
    """A list of the orders that reach the authority, which refuses all of them."""
    found = []

    def obtain(order):
        found.append(order)
        raise AcmeError("caa", "issue forbidden")

    monkeypatch.setattr("appliance.tls.acme_client.obtain", obtain)
    return found


@asynccontextmanager
async def looked_after(certificates, box, settings=SETTINGS):
    scheduler = Scheduler(box.clock, Timer())
    box.live.settings = settings
    job = Acme(box.live, certificates).job
    scheduler.start(job)
    await scheduler.settle()
    try:
        yield scheduler
    finally:
        await scheduler.close()


async def test_no_certificate_is_ordered_while_the_clock_is_not_trusted(box, certificates, orders):
    doubt(box.clock)
    async with looked_after(certificates, box):
        assert orders == []
        assert read_state(certificates.folder).attempts == ()


async def test_a_refused_order_is_recorded_and_retried_only_when_it_is_due(
    box, certificates, orders, clock
):
    async with looked_after(certificates, box) as scheduler:
        assert [order.name for order in orders] == [NAME]
        assert read_state(certificates.folder).reason == "caa"
        clock.advance(4 * MINUTE)
        scheduler.look()
        await scheduler.settle()
        assert len(orders) == 1

    async with looked_after(certificates, box) as scheduler:  # a restart
        assert len(orders) == 1
        clock.advance(2 * MINUTE)
        scheduler.look()
        await scheduler.settle()
        assert len(orders) == 2
        assert read_state(certificates.folder).reason == "caa"


async def test_no_order_is_made_if_the_attempt_cannot_be_recorded(
    box, certificates, orders, monkeypatch
):
    def write(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("appliance.tls.acme.write_json", write)

    async with looked_after(certificates, box):
        assert orders == []
