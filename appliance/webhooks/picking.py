"""Which deliveries start now: read from the rows, within the room that a lane has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from appliance.model.delivery import DueDelivery
from appliance.model.venue import Venue
from appliance.store.connection import Reader
from appliance.store.deliveries import (
    find_next_retry,
    find_pending,
    has_older_untried,
    newest_delivery,
    page_retries,
    page_untried,
)
from appliance.store.reservations import find_reservation
from appliance.webhooks.event_body import event_body
from appliance.webhooks.lane import Lane

IN_FLIGHT_MAX = 32
GUARANTEED = 4
_LOOK_PAST = 16  # rows to look past those that cannot start now


@dataclass(frozen=True, slots=True)
class Pick:
    """A delivery whose attempt starts now. `body` None: its reservation is no more."""

    lane: Lane
    delivery: DueDelivery
    retry: bool
    body: bytes | None


def pick_all(
    reader: Reader,
    lanes: Sequence[Lane],
    uptime: int,
    get_venue: Callable[[Reader], Venue],
    picks: list[Pick],
) -> None:
    """Append to `picks` what starts now; each is begun in its lane.

    32 attempts at most are under way over all lanes, and no lane is left with fewer than 4.
    What is beyond those is shared evenly first; what then is left goes to the lane that is
    furthest behind, so that all come to the end of a backlog together.
    """
    busy = sum(lane.wants or lane.in_flight > 0 for lane in lanes)
    spare = IN_FLIGHT_MAX - sum(max(GUARANTEED, lane.in_flight) for lane in lanes)
    for most in (max(GUARANTEED, IN_FLIGHT_MAX // max(1, busy)), IN_FLIGHT_MAX):
        for lane in sorted(lanes, key=lambda lane: (lane.in_flight, lane.cursor)):
            before = lane.in_flight
            # Its own guarantee, and what nobody is guaranteed.
            share = min(max(0, GUARANTEED - before) + max(0, spare), most - before)
            if share <= 0 or not lane.wants:
                continue
            for delivery, retry in _pick(reader, lane, uptime, share):
                body = _render(reader, delivery, get_venue)
                picks.append(Pick(lane, delivery, retry, body))
            spare -= max(GUARANTEED, lane.in_flight) - max(GUARANTEED, before)


def _pick(reader: Reader, lane: Lane, uptime: int, share: int) -> list[tuple[DueDelivery, bool]]:
    untried = _pick_released(reader, lane, share)
    untried += _pick_untried(reader, lane, share - len(untried))
    retries: list[DueDelivery] = []
    if lane.more_retries:
        retries = _pick_retries(reader, lane, uptime, share - len(untried))
        # Only now it is known whether the slot kept for a retry is needed.
        untried += _pick_untried(reader, lane, share - len(untried) - len(retries))
    return [(d, False) for d in untried] + [(d, True) for d in retries]


def _pick_released(reader: Reader, lane: Lane, share: int) -> list[DueDelivery]:
    """First attempts that waited for another delivery about the same reservation."""
    chosen: list[DueDelivery] = []
    while lane.released and lane.room_for_untried() and len(chosen) < share:
        delivery = find_pending(reader, lane.released.popleft())
        if delivery is None:
            continue
        if lane.holds_back(delivery):
            lane.hold(delivery, first=True)
            continue
        lane.begin(delivery, retry=False)
        chosen.append(delivery)
    return chosen


def _pick_fresh(reader: Reader, lane: Lane, share: int) -> list[DueDelivery]:
    """What was announced since the lane fell behind, unless an older event has to go before it.

    What is passed over here is met again at the end of the backlog.
    """
    if lane.fell_behind:
        lane.fresh_after, lane.fell_behind = newest_delivery(reader), False
    if lane.fresh_after is None or not lane.more_fresh:
        return []
    if lane.cursor >= lane.fresh_after:
        lane.fresh_after = None
        return []
    room = lane.share_of_fresh(min(lane.room_for_untried(), share))
    if room <= 0:
        return []
    rows = page_untried(reader, lane.endpoint_id, lane.fresh_after, room)
    chosen: list[DueDelivery] = []
    for delivery in rows:
        lane.fresh_after = delivery.seq
        if not (lane.holds_back(delivery) or has_older_untried(reader, lane.endpoint_id, delivery)):
            lane.begin(delivery, retry=False)
            chosen.append(delivery)
    lane.more_fresh = len(rows) == room
    return chosen


def _pick_untried(reader: Reader, lane: Lane, share: int) -> list[DueDelivery]:
    chosen = _pick_fresh(reader, lane, share)
    while lane.more_untried and not (lane.released or lane.holds_too_many):
        room = min(lane.room_for_untried(), share - len(chosen))
        if room <= 0:
            break
        rows = page_untried(reader, lane.endpoint_id, lane.cursor, room)
        for delivery in rows:
            lane.cursor = delivery.seq
            if lane.knows(delivery):
                continue
            if lane.holds_back(delivery):
                lane.hold(delivery)
                continue
            lane.begin(delivery, retry=False)
            chosen.append(delivery)
        lane.more_untried = len(rows) == room
    lane.settle()
    return chosen


def _pick_retries(reader: Reader, lane: Lane, uptime: int, share: int) -> list[DueDelivery]:
    room = min(lane.room_for_retries(), share)
    if room <= 0:
        return []
    limit = room + lane.unfinished + _LOOK_PAST
    rows = page_retries(reader, lane.endpoint_id, uptime, limit)
    chosen: list[DueDelivery] = []
    left_over = len(rows) == limit
    for delivery in rows:
        if lane.knows(delivery):
            left_over |= not delivery.attempts  # replayed while an attempt is under way
            continue
        if lane.holds_back(delivery) or len(chosen) == room:
            left_over = True
            continue
        lane.begin(delivery, retry=True)
        chosen.append(delivery)
    lane.more_retries = left_over
    if not left_over:
        following = find_next_retry(reader, lane.endpoint_id, uptime)
        if following is not None:
            lane.expect_retry(following)
    return chosen


def _render(
    reader: Reader, delivery: DueDelivery, get_venue: Callable[[Reader], Venue]
) -> bytes | None:
    """The body in the present state; None when its reservation was erased altogether."""
    if delivery.reservation_id is None:
        return event_body(delivery, None, get_venue(reader))
    reservation = find_reservation(reader, delivery.reservation_id)
    return None if reservation is None else event_body(delivery, reservation, get_venue(reader))
