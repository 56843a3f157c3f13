"""One endpoint's lane: what is on its way to it, and how much more may be.

Pure state: no clock, no rows, no sockets. Slow receivers fill their own lane and no other.
"""

from collections import deque

from appliance.model.delivery import DueDelivery

WINDOW_MAX = 8
HELD_MAX = 256


class Lane:
    """First attempts and retries of one endpoint share a window of 1 to 8 slots.

    Each kind always has a slot of its own, so neither waits behind a backlog of the other;
    retries never take more than half. Failures halve the window, and each full window of
    successes doubles it. Two deliveries about one reservation never travel together.

    A lane that fell behind has a backlog, up to `fresh_after`: first attempts written later
    are fresh, and take every other slot that comes free.
    """

    def __init__(self, endpoint_id: str) -> None:
        self.endpoint_id = endpoint_id
        self.window = WINDOW_MAX
        self.cursor = 0
        self.fell_behind = True
        self.fresh_after: int | None = None
        self.more_untried = True
        self.more_fresh = True
        self.more_retries = True
        self.next_retry: int | None = None
        self.failing = False
        self.held: set[str] = set()
        self.released: deque[int] = deque()
        self._successes = 0
        self._fresh_goes_first = True
        self._untried = 0
        self._retries = 0
        self._unfinished: set[int] = set()
        self._travelling: set[str] = set()
        self._held: dict[str, deque[int]] = {}
        self._held_count = 0

    @property
    def in_flight(self) -> int:
        """How many attempts are under way."""
        return self._untried + self._retries

    @property
    def wants(self) -> bool:
        """Whether there may be something to send, and nothing holds it back."""
        return not self.held and (self.more_untried or self.more_retries or bool(self.released))

    @property
    def unfinished(self) -> int:
        """Deliveries in flight, or whose outcome is not written yet."""
        return len(self._unfinished)

    def expect_untried(self) -> None:
        """A commit wrote more first attempts."""
        self.more_untried = self.more_fresh = True

    def share_of_fresh(self, room: int) -> int:
        """How much of `room` is for fresh first attempts; the odd slot goes to each in turn."""
        if room % 2:  # only then it was anybody's turn
            self._fresh_goes_first = not self._fresh_goes_first
            return room // 2 if self._fresh_goes_first else room - room // 2
        return room // 2

    def room_for_untried(self) -> int:
        """How many first attempts may start now."""
        others = max(self._retries, 1 if self.more_retries else 0)
        return self._room(max(1, self.window - others) - self._untried)

    def room_for_retries(self) -> int:
        """How many retries may start now."""
        share = max(1, min(self.window // 2, self.window - self._untried))
        return self._room(share - self._retries)

    def holds_back(self, delivery: DueDelivery) -> bool:
        """Whether another delivery about the same reservation is under way."""
        return delivery.reservation_id in self._travelling

    def knows(self, delivery: DueDelivery) -> bool:
        """Whether its present attempt was started already."""
        return delivery.seq in self._unfinished

    def hold(self, delivery: DueDelivery, *, first: bool = False) -> None:
        """Keep a first attempt for when the one under way has ended; `first` among those."""
        assert delivery.reservation_id is not None  # noqa: S101 - only those are held back
        waiting = self._held.setdefault(delivery.reservation_id, deque())
        if first:
            waiting.appendleft(delivery.seq)
        else:
            waiting.append(delivery.seq)
        self._held_count += 1

    @property
    def holds_too_many(self) -> bool:
        """Whether reading on would fill the memory with held deliveries."""
        return self._held_count >= HELD_MAX

    def begin(self, delivery: DueDelivery, *, retry: bool) -> None:
        """An attempt starts."""
        self._unfinished.add(delivery.seq)
        if delivery.reservation_id is not None:
            self._travelling.add(delivery.reservation_id)
        if retry:
            self._retries += 1
        else:
            self._untried += 1

    def end(self, delivery: DueDelivery, *, retry: bool) -> None:
        """An attempt is over; the next one about its reservation may start."""
        if retry:
            self._retries -= 1
        else:
            self._untried -= 1
        reservation_id = delivery.reservation_id
        if reservation_id is None:
            return
        self._travelling.discard(reservation_id)
        waiting = self._held.get(reservation_id)
        if waiting:
            self.released.append(waiting.popleft())
            self._held_count -= 1
        if not waiting:
            self._held.pop(reservation_id, None)

    def finish(self, seq: int) -> None:
        """The outcome of a delivery's attempt is written, or it was abandoned."""
        self._unfinished.discard(seq)
        self.settle()

    def settle(self) -> None:
        """Start again from the first row when nothing is left behind the cursor.

        Row numbers may be given anew, once old deliveries are pruned.
        """
        if not (self._unfinished or self._held or self.released or self.more_untried):
            self.cursor, self.fresh_after = 0, None

    def read_anew(self) -> None:
        """Forget which rows were met, but for what is under way: some could not be read."""
        self.cursor, self.fresh_after, self.fell_behind = 0, None, True
        self.more_untried = self.more_fresh = self.more_retries = True
        self.released.clear()
        self._held.clear()
        self._held_count = 0

    def adapt(self, *, delivered: bool, strained: bool) -> None:
        """Learn from an outcome how much the receiver can take."""
        if strained:
            self.window = max(1, self.window // 2)
            self._successes = 0
        elif delivered and self.window < WINDOW_MAX:
            self._successes += 1
            if self._successes >= self.window:
                self.window *= 2
                self._successes = 0

    def due(self, uptime: int) -> None:
        """Note that the time of the next retry has come, if it has."""
        if self.next_retry is not None and self.next_retry <= uptime:
            self.next_retry = None
            self.more_retries = True

    def expect_retry(self, uptime: int) -> None:
        """Note when a delivery is due again."""
        if self.next_retry is None or uptime < self.next_retry:
            self.next_retry = uptime

    def _room(self, wanted: int) -> int:
        return max(0, min(wanted, max(self.window, 2) - self.in_flight))
