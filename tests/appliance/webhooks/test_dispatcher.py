"""From a commit to a recorded attempt, over real sockets."""


async def test_a_committed_event_is_sent_to_its_subscriber_and_recorded(world, receiver):
    endpoint, _ = await world.register(receiver.url)
    await world.start()

    [reservation_id] = await world.book()

    [request] = await receiver.got(1)
    assert request.line == "POST /hook HTTP/1.1"
    assert request.reservation["serviceReservationId"] == reservation_id
    await world.settled("delivered")
    assert world.attempts() == [(1, "delivered")]
