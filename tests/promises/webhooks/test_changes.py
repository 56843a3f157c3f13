"""Changes to an endpoint while deliveries to it are pending or in flight."""

import asyncio
import threading

import pytest
import stripe

from appliance.clock import SystemClock, newest_zone_database
from appliance.core.errors import NotFound, TooManyEndpoints
from appliance.core.tokens import Tokens
from appliance.database.integrity import session
from appliance.webhooks.endpoints import (
    activate_endpoint,
    deactivate_endpoint,
    revoke_old_secret,
    roll_secret,
    send_test_event,
)
from tests.webhooks.receivers import an_answer

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def holds(request, secret):
    header, body = request.headers["x-service-signature"], request.raw.decode()
    try:
        return stripe.WebhookSignature.verify_header(body, header, secret)
    except stripe.SignatureVerificationError:
        return False


@pytest.fixture
async def failed_once(world, receiver):
    """Return (endpoint, secret) of an endpoint whose first delivery failed once."""
    endpoint, secret = await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    await world.start()
    await world.book()
    await world.recorded(1)
    return endpoint, secret


async def test_the_old_secret_revoked_between_attempts_signs_no_more(
    world, receiver, timer, failed_once
):
    endpoint, old = failed_once

    new = await world.database.write(roll_secret, world.environment.keyring, endpoint.id)
    assert await world.database.write(revoke_old_secret, endpoint.id)
    assert not await world.database.write(revoke_old_secret, endpoint.id)
    timer.advance(60)
    _, retry = await receiver.got(2)

    assert holds(retry, new)
    assert not holds(retry, old)
    assert world.rows("SELECT previous_secret FROM endpoint") == [(None,)]


async def test_rolled_twice_the_two_newest_sign_and_the_oldest_does_not(
    world, receiver, timer, failed_once
):
    endpoint, oldest = failed_once

    middle = await world.database.write(roll_secret, world.environment.keyring, endpoint.id)
    newest = await world.database.write(roll_secret, world.environment.keyring, endpoint.id)
    timer.advance(60)
    _, retry = await receiver.got(2)

    assert [holds(retry, secret) for secret in (newest, middle, oldest)] == [True, True, False]


async def test_however_many_activate_here_and_by_command_and_register_five_are_active(world):
    ids = []
    for number in range(10):
        endpoint, _ = await world.register(f"https://{number}.example/")
        await world.database.write(deactivate_endpoint, endpoint.id)
        ids.append(endpoint.id)
    path, refusals = world.database.path, []

    def command(endpoint_id):
        try:
            with session(path, SystemClock(), Tokens(), newest_zone_database()) as tx:
                activate_endpoint(tx, endpoint_id)
        except TooManyEndpoints as refusal:
            refusals.append(refusal)

    threads = [threading.Thread(target=command, args=(id_,)) for id_ in ids[:5]]
    for thread in threads:
        thread.start()
    found = await asyncio.gather(
        *(world.database.write(activate_endpoint, id_) for id_ in ids[5:]),
        *(world.register(f"https://new-{number}.example/") for number in range(5)),
        return_exceptions=True,
    )
    for thread in threads:
        await asyncio.to_thread(thread.join)

    refused = len(refusals) + sum(isinstance(error, TooManyEndpoints) for error in found)
    assert refused == 10
    assert world.rows("SELECT count(*) FROM endpoint WHERE active = 1") == [(5,)]


async def test_a_test_event_to_one_to_all_to_none_to_an_inactive_and_an_unknown_one(
    world, open_receiver
):
    one, other, off = [await open_receiver() for _ in range(3)]
    (first, _), (second, _), (inactive, _) = [
        await world.register(r.url) for r in (one, other, off)
    ]
    await world.database.write(deactivate_endpoint, inactive.id)
    await world.start()

    to_one = await world.database.write(send_test_event, first.id)
    to_all = await world.database.write(send_test_event, None)
    to_inactive = await world.database.write(send_test_event, inactive.id)
    for action in (send_test_event, activate_endpoint):
        with pytest.raises(NotFound):
            await world.database.write(action, UNKNOWN)
    await world.settled(*["delivered"] * 3)
    for endpoint in (first, second):
        await world.database.write(deactivate_endpoint, endpoint.id)
    to_none = await world.database.write(send_test_event, None)

    assert (len(to_one), len(to_all), to_inactive, to_none) == (1, 2, [], [])
    assert {r.id for r in one.requests + other.requests} == {*to_one, *to_all}
    assert off.requests == []
