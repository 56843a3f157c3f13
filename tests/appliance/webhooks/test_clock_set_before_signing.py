"""What is signed bears the time that was judged, whatever the clock is set to a moment later."""

import pytest

from tests.appliance.webhooks.clocks import A_YEAR_BACK, A_YEAR_ON, GRACED, nothing_more


@pytest.fixture
def settings():
    return GRACED


@pytest.mark.parametrize("leap", [A_YEAR_ON, A_YEAR_BACK])
async def test_a_clock_that_is_set_between_the_judgement_and_the_signature_signs_nothing(
    world, receiver, clock, surroundings, leap
):
    await world.register(receiver.url)
    dispatcher = await world.start()
    surroundings.synchronised = False
    judged = clock.now() // 1000
    attempt = dispatcher._attempt

    async def begin(*args):
        clock.set(leap)
        await attempt(*args)

    dispatcher._attempt = begin

    await world.book(2)

    [first] = await receiver.got(1)
    assert first.headers["x-service-signature"].startswith(f"t={judged},")
    await nothing_more(receiver, 1)
    assert not dispatcher.clock_gate.permits()
