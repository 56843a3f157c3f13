"""From a commit to a recorded attempt, over real sockets."""

import asyncio
import json
import logging
from dataclasses import replace

import pytest
import stripe

from appliance.actions.deactivate_endpoint import deactivate_endpoint
from appliance.actions.register_endpoint import EndpointsChanged
from appliance.actions.send_test_event import send_test_event
from appliance.errors import InvalidWebhookUrl, Unavailable
from appliance.webhooks.client import Budgets
from appliance.webhooks.dispatcher import Dispatcher
from tests.appliance.webhooks.conftest import an_answer

FULL = Budgets()


async def test_a_committed_event_is_sent_to_its_subscriber_and_recorded(world, receiver):
    await world.register(receiver.url)
    await world.start()

    [reservation_id] = await world.book()

    [request] = await receiver.got(1)
    assert request.line == "POST /hook HTTP/1.1"
    assert request.reservation["serviceReservationId"] == reservation_id
    await world.settled("delivered")
    assert world.attempts() == [(1, "delivered")]


async def test_the_headers_are_those_of_the_contract_and_the_signature_holds(world, receiver):
    _, secret = await world.register(receiver.url)
    await world.start()

    await world.book(customer_name='\u202e"};\x00 سلمى', external_ref="\u2028\ud83e\udd42".encode(
        "utf-16", "surrogatepass").decode("utf-16"))  # fmt: skip

    [request] = await receiver.got(1)
    headers = request.headers
    assert headers["host"] == f"127.0.0.1:{receiver.port}"
    assert headers["content-type"] == "application/json"
    assert headers["x-service-event"] == request.body["type"] == "reservation.created"
    assert headers["x-service-delivery"] == request.body["id"]
    assert headers["x-service-signature"].startswith(f"t={world.clock.now() // 1000},v1=")
    assert stripe.WebhookSignature.verify_header(
        request.raw.decode(), headers["x-service-signature"], secret
    )


async def test_only_subscribers_of_the_type_receive_it(world, open_receiver):
    created, cancelled = await open_receiver(), await open_receiver()
    await world.register(created.url, ("reservation.created",))
    await world.register(cancelled.url, ("reservation.cancelled",))
    await world.start()

    [reservation_id] = await world.book()
    await world.announce("reservation.cancelled", reservation_id)

    await world.settled("delivered", "delivered")
    assert [r.headers["x-service-event"] for r in created.requests] == ["reservation.created"]
    assert [r.headers["x-service-event"] for r in cancelled.requests] == ["reservation.cancelled"]


async def test_an_endpoint_registered_while_it_runs_is_served_at_once(world, receiver):
    await world.start()
    await world.register(receiver.url)

    await world.book()

    await world.settled("delivered")


async def test_what_was_queued_before_the_start_is_sent_oldest_first(world, receiver):
    await world.register(receiver.url)
    ids = await world.book(30)
    receiver.delay = 0.002

    await world.start()

    await world.settled(*["delivered"] * 30)
    arrived = [r.reservation["serviceReservationId"] for r in receiver.requests]
    assert sorted(arrived) == sorted(ids)
    assert all(abs(arrived.index(id_) - i) < 8 for i, id_ in enumerate(ids))
    assert receiver.most_at_once == 8


async def test_the_body_tells_the_state_at_the_time_of_sending(world, receiver):
    await world.register(receiver.url)
    [reservation_id] = await world.book()
    await world.change(reservation_id, status="cancelled", checked_in_at=world.clock.now())

    await world.start()

    [request] = await receiver.got(1)
    assert request.body["type"] == "reservation.created"
    assert request.reservation["status"] == "cancelled"
    assert request.reservation["checkedInAt"] == "2026-11-21T19:00:00.000Z"


async def test_an_erased_name_is_not_sent(world, receiver):
    await world.register(receiver.url)
    [reservation_id] = await world.book()
    await world.change(reservation_id, customer_name=None)

    await world.start()

    [request] = await receiver.got(1)
    assert request.reservation["customerFirstName"] is None


async def test_a_delivery_about_a_reservation_that_is_no_more_is_cancelled_unsent(world, receiver):
    await world.register(receiver.url)
    [reservation_id] = await world.book()
    await world.database.write(
        lambda tx: tx.execute("DELETE FROM reservation WHERE id = :id", {"id": reservation_id})
    )

    await world.start()

    await world.settled("cancelled")
    assert world.attempts() == []
    assert receiver.requests == []


async def test_events_about_one_reservation_arrive_one_after_another(world, receiver):
    await world.register(receiver.url)
    receiver.delay = 0.05
    await world.start()

    [reservation_id] = await world.book()
    await world.announce("reservation.cancelled", reservation_id)
    await world.announce("reservation.created", reservation_id)

    await world.settled("delivered", "delivered", "delivered")
    assert receiver.most_at_once == 1
    assert [r.body["type"] for r in receiver.requests] == [
        "reservation.created", "reservation.cancelled", "reservation.created",
    ]  # fmt: skip


async def test_a_slow_receiver_sees_eight_at_once_and_the_others_do_not_wait(
    world, open_receiver, change_outside
):
    change_outside(budgets=FULL)
    slow, quick = await open_receiver(), await open_receiver()
    slow.delay = 30
    await world.register(slow.url)
    await world.register(quick.url)
    await world.start()

    await world.book(40)
    await quick.got(40)

    assert len(slow.requests) == slow.at_once == 8
    await world.stop(0)


async def test_thirty_two_are_under_way_at_most_and_no_lane_gets_less_than_four(
    world, open_receiver, change_outside
):
    change_outside(budgets=FULL)
    receivers = [await open_receiver() for _ in range(5)]
    for receiver in receivers:
        receiver.delay = 30
        await world.register(receiver.url)
    await world.book(20)

    await world.start()
    await world.until(lambda: sum(receiver.at_once for receiver in receivers) >= 32)
    await asyncio.sleep(0.05)

    under_way = [receiver.at_once for receiver in receivers]
    assert sum(under_way) == 32
    assert min(under_way) >= 4
    assert max(under_way) <= 8
    await world.stop(0)


async def test_a_fresh_event_does_not_wait_behind_a_backlog_of_retries(world, receiver, uptime):
    await world.register(receiver.url)
    receiver.always = an_answer(500)
    await world.start()
    await world.book(60)
    await world.recorded(60)
    receiver.always, receiver.delay = an_answer(200), 0.05
    uptime.advance(60)
    await receiver.got(62)

    [reservation_id] = await world.book()
    booked = len(receiver.requests)

    def told():
        return [r.reservation["serviceReservationId"] for r in receiver.requests]

    await world.until(lambda: reservation_id in told())

    assert told().index(reservation_id) - booked <= 10
    await world.until(lambda: world.states() == ["delivered"] * 61)


async def test_a_deactivated_endpoint_receives_nothing_more(world, receiver, uptime):
    endpoint, _ = await world.register(receiver.url)
    receiver.always = an_answer(500)
    await world.start()
    await world.book(3)
    await world.recorded(3)

    await world.database.write(deactivate_endpoint, endpoint.id)
    assert world.states() == ["cancelled"] * 3
    uptime.advance(24 * 3600)
    await world.book()
    await asyncio.sleep(0.05)

    assert len(receiver.requests) == 3
    assert world.states() == ["cancelled"] * 3
    assert uptime.next_alarm is None


async def test_an_attempt_under_way_when_its_endpoint_is_deactivated_is_still_recorded(
    world, receiver
):
    endpoint, _ = await world.register(receiver.url)
    receiver.delay = 0.1
    await world.start()
    await world.book()
    await receiver.got(1)

    await world.database.write(deactivate_endpoint, endpoint.id)

    await world.settled("delivered")
    assert world.attempts() == [(1, "delivered")]


async def test_a_failed_attempt_does_not_revive_a_cancelled_delivery(world, receiver):
    endpoint, _ = await world.register(receiver.url)
    receiver.delay, receiver.always = 0.1, an_answer(500)
    await world.start()
    await world.book()
    await receiver.got(1)

    await world.database.write(deactivate_endpoint, endpoint.id)
    await world.recorded(1)

    assert world.states() == ["cancelled"]


async def test_both_secrets_sign_for_a_day_after_a_roll(world, receiver, uptime):
    endpoint, old = await world.register(receiver.url)
    new = world.database.tokens.new_webhook_secret()
    await world.start()
    await world.database.write(roll, world.environment.keyring, endpoint.id, new)

    await world.book()
    await receiver.got(1)
    uptime.advance(24 * 3600 + 1)
    await world.book()
    first, second = await receiver.got(2)

    for secret in (new, old):
        assert _holds(first, secret)
    assert first.headers["x-service-signature"].count("v1=") == 2
    assert _holds(second, new)
    assert not _holds(second, old)


def roll(tx, keyring, endpoint_id, new):
    wrapped = keyring.wrap(new.encode(), tx.tokens.random_bytes(12))
    tx.execute(
        """UPDATE endpoint SET previous_secret = secret, secret = :secret,
               previous_secret_expires_at = :expires_at WHERE id = :id""",
        {"id": endpoint_id, "secret": wrapped, "expires_at": tx.now + 24 * 3600 * 1000},
    )
    tx.notices.append(EndpointsChanged(endpoint_id))


def _holds(request, secret):
    header, body = request.headers["x-service-signature"], request.raw.decode()
    try:
        return stripe.WebhookSignature.verify_header(body, header, secret)
    except stripe.SignatureVerificationError:
        return False


async def test_a_test_event_goes_out_signed_with_a_full_sample(world, receiver):
    endpoint, secret = await world.register(receiver.url, ("reservation.declined",))
    await world.start()

    delivery_ids = await world.database.write(send_test_event, endpoint.id)

    [request] = await receiver.got(1)
    assert [request.id] == delivery_ids
    assert request.headers["x-service-event"] == "webhook.test"
    assert request.reservation["status"] == "confirmed"
    assert _holds(request, secret)


async def test_how_an_endpoint_does_is_told_in_its_row(world, receiver):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500), an_answer(503)]
    await world.start()

    def health():
        return world.rows("SELECT failures_in_a_row, last_outcome FROM endpoint")[0]

    await world.book(1)
    await world.until(lambda: health() == (1, "http_500"))
    await world.book(1)
    await world.until(lambda: health() == (2, "http_503"))
    await world.book(1)
    await world.until(lambda: health() == (0, "delivered"))


async def test_a_url_that_the_settings_no_longer_allow_is_blocked_and_says_so(
    world, receiver, caplog
):
    await world.register(receiver.url)
    webhooks = replace(world.environment.settings.webhooks, allow_http=False)
    settings = replace(world.environment.settings, webhooks=webhooks)
    world.environment = replace(world.environment, settings=settings)

    await world.start()
    await world.book()

    await world.recorded(1)
    assert world.attempts() == [(1, "blocked")]
    assert receiver.connections == 0
    assert world.rows("SELECT last_outcome FROM endpoint") == [("blocked",)]
    assert "is blocked" in caplog.text


async def test_a_streak_of_failures_is_one_line_in_the_log_and_its_end_another(
    world, receiver, caplog
):
    caplog.set_level(logging.INFO, "appliance.webhooks")
    await world.register(receiver.url)
    receiver.answers = [an_answer(500)] * 5
    await world.start()

    await world.book(5)
    await world.recorded(5)
    await world.book(2)
    await world.recorded(7)

    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "fails: http_500" in line]) == 1
    assert len([line for line in lines if "answers again" in line]) == 1


async def test_nothing_secret_and_no_guest_is_in_the_log(world, receiver, caplog):
    caplog.set_level(logging.DEBUG)
    _, secret = await world.register(f"{receiver.url}?token=canary")
    receiver.always = an_answer(500, body=b"Yasmine canary")
    await world.start()

    await world.book(customer_name="Yasmine Canary")
    await world.recorded(1)

    for word in (secret, secret[6:], "Yasmine", "canary"):
        assert word not in caplog.text


async def test_nothing_happens_when_nothing_is_due(world, receiver, uptime, monkeypatch):
    await world.register(receiver.url)
    await world.start()
    await world.book()
    await world.settled("delivered")
    await asyncio.sleep(0.05)
    statements = []
    for reader in (world.database._peeker, world.database._writer_connection):
        connection = getattr(reader, "connection", reader)
        connection.set_exec_trace(lambda _cursor, sql, _values: statements.append(sql) or True)

    uptime.advance(600)
    await asyncio.sleep(0.1)

    assert statements == []
    assert uptime.next_alarm is None


async def test_commits_that_announce_nothing_wake_nobody(world, receiver):
    await world.register(receiver.url, ("reservation.declined",))
    dispatcher = await world.start()
    await asyncio.sleep(0.02)
    pumps = []
    dispatcher._pump = lambda: pumps.append(1)

    await world.book(3)
    await asyncio.sleep(0.02)

    assert pumps == []


async def test_a_hold_keeps_everything_back_until_it_is_released(world, receiver, uptime):
    await world.register(receiver.url)
    receiver.answers = [an_answer(500)]
    dispatcher = await world.start()
    await world.book()
    await world.recorded(1)

    dispatcher.hold("no way out")
    dispatcher.hold("the clock")
    await world.book()
    uptime.advance(61)
    dispatcher.release("the clock")
    await asyncio.sleep(0.05)
    assert len(receiver.requests) == 1
    dispatcher.release("no way out")

    await world.settled("delivered", "delivered")


async def test_stopping_lets_attempts_end_and_keeps_the_rest(world, receiver):
    await world.register(receiver.url)
    receiver.delay = 0.3
    await world.book(20)
    await world.start()
    await receiver.got(8)

    await world.stop()

    assert len(receiver.requests) == 8
    assert sorted(world.states()) == ["delivered"] * 8 + ["pending"] * 12


async def test_attempts_that_outlast_the_deadline_are_sent_again_after_the_restart(
    world, receiver, change_outside
):
    change_outside(budgets=FULL)
    await world.register(receiver.url)
    receiver.delay = 30
    await world.start()
    await world.book()
    [first] = await receiver.got(1)

    await world.stop(0.05)
    assert world.states() == ["pending"]
    assert world.attempts() == []
    receiver.delay = 0
    await world.start()
    _, second = await receiver.got(2)

    assert second.id == first.id
    await world.settled("delivered")


async def test_outcomes_that_cannot_be_written_stay_in_memory_and_pause_the_sending(
    world, receiver, monkeypatch
):
    monkeypatch.setattr("appliance.webhooks.recorder._AGAIN_SECONDS", 0.05)
    await world.register(receiver.url)
    dispatcher = await world.start()
    write, full = world.database.write, True

    async def refuse(action, *args, **kwargs):
        if full and action.__name__ == "record_attempts":
            raise Unavailable
        return await write(action, *args, **kwargs)

    monkeypatch.setattr(dispatcher._recorder._database, "write", refuse)
    await world.book()
    await world.until(lambda: dispatcher._holds != set())
    await world.book(3)
    await asyncio.sleep(0.1)
    assert len(receiver.requests) == 1

    full = False

    await world.settled(*["delivered"] * 4)
    assert len(receiver.requests) == 4


async def test_many_outcomes_share_a_commit(world, receiver):
    await world.register(receiver.url)
    await world.book(64)
    commits = world.database.commits

    await world.start()
    await world.until(lambda: world.states() == ["delivered"] * 64)

    assert world.database.commits - commits <= 16


async def test_each_environment_accepts_what_its_decisions_say(box, clock, outside):
    settings = replace(
        box.live.settings, webhooks=replace(box.live.settings.webhooks, allow_http=False)
    )
    live = Dispatcher(replace(box.live, settings=settings), clock, outside)
    test = Dispatcher(replace(box.test, settings=settings), clock, outside)

    url = "http://127.0.0.1:9000/hook"
    assert await test.check_url(url) == url
    with pytest.raises(InvalidWebhookUrl, match="https is required"):
        await live.check_url(url)


async def test_ids_in_body_and_header_are_the_row_and_differ_between_endpoints(
    world, open_receiver
):
    first, second = await open_receiver(), await open_receiver()
    await world.register(first.url)
    await world.register(second.url)
    await world.start()

    await world.book()
    await world.settled("delivered", "delivered")

    ids = {id_ for (id_,) in world.rows("SELECT id FROM delivery")}
    assert {first.requests[0].id, second.requests[0].id} == ids
    assert len(ids) == 2
    assert json.loads(first.requests[0].raw)["id"] in ids
