"""A guest who is erased while a webhook about them is on its way is not written down by it."""

import pytest

from appliance.actions.erase_guest import erase_guest
from appliance.store.failed_requests import find_failed_request
from tests.appliance.webhooks.receivers import an_answer


@pytest.fixture
async def quoting(world, receiver):
    """A receiver that fails and says whose booking it was, once the guest is erased."""
    await world.register(receiver.url)

    async def answer(writer, request):
        name = request.reservation["customerFirstName"]
        if name:
            await world.database.write(
                erase_guest, request.reservation["serviceReservationId"], actor="staff:1"
            )
        writer.write(an_answer(500, body=f"no table for {name}".encode()))

    receiver.always = answer
    await world.start()
    return receiver


async def test_neither_what_was_sent_nor_what_was_answered_is_kept(world, quoting):
    await world.book()
    await world.recorded(1)

    [request] = quoting.requests
    assert request.reservation["customerFirstName"] == "Salma"
    assert world.database.peek(find_failed_request, request.id) is None
    assert world.rows("SELECT outcome, excerpt, body_sha256 FROM attempt") == [
        ("http_500", None, None)
    ]


async def test_of_a_guest_who_stays_it_is_kept(world, open_receiver):
    other = await open_receiver()
    other.always = an_answer(503, body=b"not now")
    await world.register(other.url)
    await world.start()
    await world.book()
    await world.recorded(1)

    _, kept = world.database.peek(find_failed_request, other.requests[0].id)
    assert b"Salma" in kept
    assert world.rows("SELECT excerpt, length(body_sha256) FROM attempt") == [("not now", 32)]
