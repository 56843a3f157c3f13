"""The composed box: upkeep hears from the clock gate when its timer may be wrong."""

import asyncio

from appliance.actions.enter import enter_by_staff
from appliance.store.reservations import get_reservation
from appliance.webhooks.clock_gate import ClockGate
from tests.builders import a_booking
from tests.conftest import running_box


async def test_the_kernels_word_of_a_set_clock_ends_the_evening(
    tmp_path, clock, settings, monkeypatch
):
    told = []
    start = ClockGate.start

    async def start_and_listen(gate):
        told.append(gate._on_set)
        await start(gate)

    monkeypatch.setattr(ClockGate, "start", start_and_listen)
    monkeypatch.setattr(ClockGate, "may_expire", lambda _gate: True)
    async with running_box(tmp_path, clock, settings) as running:
        booked = await running.live.database.write(enter_by_staff, a_booking(), actor="staff:1")
        await asyncio.sleep(1.1)  # upkeep has looked at it, and set its timer
        clock.advance(12 * 3600)
        for tell in told:
            tell()

        async with asyncio.timeout(60):
            while await status_of(running, booked.id) != "completed":  # noqa: ASYNC110 - upkeep's
                await asyncio.sleep(0.01)


async def status_of(running, id_):
    return (await running.live.database.read(get_reservation, id_)).status
