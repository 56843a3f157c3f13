"""Replays as the portal and the commands ask for them."""

from appliance.actions.replay_deliveries import Selection, replay_deliveries
from appliance.actions.replay_delivery import replay_delivery
from appliance.webhooks.ladder import DELAYS_MS

LADDER = [delay / 1000 for delay in DELAYS_MS]


async def replay(world, delivery_id):
    return await world.database.write(replay_delivery, delivery_id)


async def replay_all(world, endpoint_id, **options):
    """Every page; how many were replayed."""
    selection, progress = Selection(endpoint_id, **options), None
    while progress is None or not progress.done:
        progress = await world.database.write(replay_deliveries, selection, progress)
    return progress.replayed


async def die(world, uptime, count=1):
    """Let the ladder of `count` deliveries end, each failing at each attempt."""
    await world.recorded(count)
    for number, seconds in enumerate(LADDER, 2):
        uptime.advance(seconds)
        await world.recorded(number * count)


def about(request):
    return request.reservation["serviceReservationId"]


def arrived(receiver, reservation_id):
    return any(about(request) == reservation_id for request in receiver.requests)


def many_dead(tx, endpoint_id, count):
    """Test events of yesterday that nobody took."""
    for _ in range(count):
        seq = tx.insert("event", {"type": "webhook.test", "occurred_at": tx.now - 86_400_000})
        tx.insert("delivery", {"id": tx.new_id(), "endpoint_id": endpoint_id, "event_seq": seq,
                               "state": "dead", "attempts": 6, "due_at": tx.now,
                               "due_boot": "b", "finished_at": tx.now})  # fmt: skip
