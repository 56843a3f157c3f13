"""Which deliveries start now: read from the rows, within the room that a lane has."""

from collections.abc import Sequence
from dataclasses import dataclass

from appliance.model.delivery import DueDelivery
from appliance.model.endpoint import Endpoint
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
from appliance.store.endpoints import get_endpoint
from appliance.store.reservations import find_reservation
from appliance.store.venue import get_venue
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


def pick_all(reader: Reader, lanes: Sequence[Lane], uptime: int, picks: list[Pick]) -> None:
    """Append to `picks` what starts now; each is begun in its lane.

    Where rows cannot be read this raises: what it has appended is begun, the rest is lost to
    the lanes, which have to `read_anew`.

    32 attempts at most are under way over all lanes, and no lane is left with fewer than 4.
    What is beyond those is shared evenly first; what then is left goes to the lane that is
    furthest behind, so that all come to the end of a backlog together.
    """
    this = _Round(reader, picks)
    busy = sum(lane.wants or lane.in_flight > 0 for lane in lanes)
    spare = IN_FLIGHT_MAX - sum(max(GUARANTEED, lane.in_flight) for lane in lanes)
    for most in (max(GUARANTEED, IN_FLIGHT_MAX // max(1, busy)), IN_FLIGHT_MAX):
        for lane in sorted(lanes, key=lambda lane: (lane.in_flight, lane.cursor)):
            before = lane.in_flight
            # Its own guarantee, and what nobody is guaranteed.
            share = min(max(0, GUARANTEED - before) + max(0, spare), most - before)
            if share <= 0 or not lane.wants:
                continue
            _pick(this, lane, uptime, share)
            spare -= max(GUARANTEED, lane.in_flight) - max(GUARANTEED, before)


class _Round:
    """What one round reads with, and what it has begun so far."""

    def __init__(self, reader: Reader, picks: list[Pick]) -> None:
        self.reader = reader
        self._picks = picks
        self._venue: Venue | None = None
        self._endpoints: dict[str, Endpoint] = {}

    def start(self, lane: Lane, delivery: DueDelivery, *, retry: bool) -> None:
        """Begin an attempt; raises, with nothing begun, where its body cannot be read."""
        body = self._render(lane.endpoint_id, delivery)
        lane.begin(delivery, retry=retry)
        self._picks.append(Pick(lane, delivery, retry, body))

    def _render(self, endpoint_id: str, delivery: DueDelivery) -> bytes | None:
        """The body in the present state; None when its reservation was erased altogether."""
        reservation = None
        if delivery.reservation_id is not None:
            reservation = find_reservation(self.reader, delivery.reservation_id)
            if reservation is None:
                return None
        if self._venue is None:  # once for all
            self._venue = get_venue(self.reader)
        if endpoint_id not in self._endpoints:
            self._endpoints[endpoint_id] = get_endpoint(self.reader, endpoint_id)
        return event_body(delivery, reservation, self._venue, self._endpoints[endpoint_id])


def _pick(this: _Round, lane: Lane, uptime: int, share: int) -> None:
    share -= _pick_released(this, lane, share)
    share -= _pick_untried(this, lane, share)
    if lane.more_retries:
        share -= _pick_retries(this, lane, uptime, share)
        # Only now it is known whether the slot kept for a retry is needed.
        _pick_untried(this, lane, share)


def _pick_released(this: _Round, lane: Lane, share: int) -> int:
    """First attempts that waited for another delivery about the same reservation: how many."""
    chosen = 0
    while lane.released and lane.room_for_untried() and chosen < share:
        delivery = find_pending(this.reader, lane.released.popleft())
        if delivery is None:
            continue
        if lane.holds_back(delivery):
            lane.hold(delivery, first=True)
            continue
        this.start(lane, delivery, retry=False)
        chosen += 1
    return chosen


def _pick_fresh(this: _Round, lane: Lane, share: int) -> int:
    """What was announced since the lane fell behind, unless an older event has to go before it.

    What is passed over here is met again at the end of the backlog.
    """
    if lane.fell_behind:
        lane.fresh_after, lane.fell_behind = newest_delivery(this.reader), False
    if lane.fresh_after is None or not lane.more_fresh:
        return 0
    if lane.cursor >= lane.fresh_after:
        lane.fresh_after = None
        return 0
    room = lane.share_of_fresh(min(lane.room_for_untried(), share))
    if room <= 0:
        return 0
    rows = page_untried(this.reader, lane.endpoint_id, lane.fresh_after, room)
    chosen = 0
    for delivery in rows:
        lane.fresh_after = delivery.seq
        is_held = lane.holds_back(delivery)
        if not is_held and not has_older_untried(this.reader, lane.endpoint_id, delivery):
            this.start(lane, delivery, retry=False)
            chosen += 1
    lane.more_fresh = len(rows) == room
    return chosen


def _pick_untried(this: _Round, lane: Lane, share: int) -> int:
    chosen = _pick_fresh(this, lane, share)
    while lane.more_untried and not (lane.released or lane.holds_too_many):
        room = min(lane.room_for_untried(), share - chosen)
        if room <= 0:
            break
        rows = page_untried(this.reader, lane.endpoint_id, lane.cursor, room)
        for delivery in rows:
            lane.cursor = delivery.seq
            if lane.knows(delivery):
                continue
            if lane.holds_back(delivery):
                lane.hold(delivery)
                continue
            this.start(lane, delivery, retry=False)
            chosen += 1
        lane.more_untried = len(rows) == room
    lane.settle()
    return chosen


def _pick_retries(this: _Round, lane: Lane, uptime: int, share: int) -> int:
    room = min(lane.room_for_retries(), share)
    if room <= 0:
        return 0
    limit = room + lane.unfinished + _LOOK_PAST
    rows = page_retries(this.reader, lane.endpoint_id, uptime, limit)
    chosen = 0
    left_over = len(rows) == limit
    for delivery in rows:
        if lane.knows(delivery):
            left_over |= not delivery.attempts  # replayed while an attempt is under way
            continue
        if lane.holds_back(delivery) or chosen == room:
            left_over = True
            continue
        this.start(lane, delivery, retry=True)
        chosen += 1
    lane.more_retries = left_over
    if not left_over:
        following = find_next_retry(this.reader, lane.endpoint_id, uptime)
        if following is not None:
            lane.expect_retry(following)
    return chosen
