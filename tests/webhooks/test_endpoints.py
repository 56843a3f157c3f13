"""One endpoint: its secrets, test events, and what is logged and stored."""

import logging

import pytest
import stripe

from appliance.privacy import erase_guest
from appliance.webhooks.deliveries import find_failed_request
from appliance.webhooks.delivery_log import replay_delivery
from appliance.webhooks.endpoints import revoke_old_secret, roll_secret
from tests.webhooks.receivers import an_answer


def holds(request, secret):
    header, body = request.headers["x-service-signature"], request.raw.decode()
    try:
        return stripe.WebhookSignature.verify_header(body, header, secret)
    except stripe.SignatureVerificationError:
        return False


async def test_the_log_contains_no_secrets_and_no_guests(world, receiver, caplog):
    caplog.set_level(logging.DEBUG)
    _, secret = await world.register(f"{receiver.url}?token=canary")
    receiver.always = an_answer(500, body=b"Yasmine canary")
    await world.start()

    await world.book(customer_name="Yasmine Canary")
    await world.recorded(1)

    for word in (secret, secret[6:], "Yasmine", "canary"):
        assert word not in caplog.text


@pytest.mark.parametrize("is_erased", [True, False])
async def test_request_and_response_are_stored_unless_the_guest_was_erased_meanwhile(
    world, receiver, is_erased
):
    async def answer(writer, request):
        if is_erased:
            id_ = request.reservation["serviceReservationId"]
            await world.database.write(erase_guest, id_, actor="staff:1")
        writer.write(an_answer(500, body=b"no table for Salma"))

    receiver.always = answer
    await world.register(receiver.url)
    await world.start()
    await world.book()
    await world.recorded(1)

    [request] = receiver.requests
    assert request.reservation["customerFirstName"] == "Salma"
    kept = world.database.peek(find_failed_request, request.id)
    [(excerpt, digest)] = world.rows("SELECT excerpt, length(body_sha256) FROM attempt")
    if is_erased:
        assert (kept, excerpt, digest) == (None, None, None)
    else:
        assert b"Salma" in kept[1]
        assert (excerpt, digest) == ("no table for Salma", 32)


async def test_a_failed_request_body_is_deleted_once_a_replay_has_delivered_it(
    world, receiver, tried_once
):
    [request] = receiver.requests
    assert world.database.peek(find_failed_request, request.id) is not None

    await world.database.write(replay_delivery, request.id)
    await world.settled("delivered")

    assert world.database.peek(find_failed_request, request.id) is None


async def test_an_old_secret_revoked_between_two_attempts_no_longer_signs(world, receiver, timer):
    endpoint, old = await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    await world.start()
    await world.book()
    await world.recorded(1)

    new = await world.database.write(roll_secret, world.environment.keyring, endpoint.id)
    assert await world.database.write(revoke_old_secret, endpoint.id)
    timer.advance(60)
    _, retry = await receiver.got(2)

    assert holds(retry, new)
    assert not holds(retry, old)
