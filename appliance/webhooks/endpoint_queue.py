"""What is sent to one endpoint, in which order, and how much of it at once."""

from collections.abc import Generator, Iterator

from appliance.core.tokens import Keyring
from appliance.database.connection import Reader
from appliance.webhooks.client import Client, Request
from appliance.webhooks.deliveries import (
    DueDelivery,
    Outcome,
    find_next_retry,
    iterate_retries,
    iterate_untried,
    newest_delivery,
)
from appliance.webhooks.endpoints import Endpoint
from appliance.webhooks.payload import sign

IN_FLIGHT_MAX = 6


class EndpointQueue:
    """The deliveries of one endpoint: at most 6 in flight, 1 while the endpoint is failing.

    Two deliveries about one reservation are never in flight together, and first attempts about
    it keep their order. A queue that fell behind has a backlog: what was written since takes
    half of the places, so that it does not wait behind the backlog. The rest goes to retries
    that are due, then to the oldest first attempts.
    """

    def __init__(self, endpoint_id: str) -> None:
        self.endpoint_id = endpoint_id
        self.endpoint: Endpoint | None = None  # None: switched off
        self.client: Client | None = None  # None: the settings do not allow its URL
        self.in_flight = 0
        self.failing = False
        self.offline = False
        self.paused_until: int | None = None  # as uptime
        self.next_retry: int | None = 0
        self._may_have_untried = True
        self._is_contended = self._retries_are_contended = False
        self._fell_behind = True
        self._backlog_end = 0
        self._odd_is_fresh = False
        self._under_way: dict[int, str | None] = {}  # reservations by seq, until recorded
        self._secrets: list[tuple[str, int | None]] = []  # and when each expires

    def follow(self, endpoint: Endpoint, client: Client | None, keyring: Keyring) -> None:
        """From now on send as the row `endpoint` says."""
        self.endpoint, self.client = endpoint, client
        self._secrets = [(keyring.unwrap(endpoint.secret).decode(), None)]
        if endpoint.previous_secret is not None:
            previous = keyring.unwrap(endpoint.previous_secret).decode()
            self._secrets.append((previous, endpoint.previous_secret_expires_at or 0))

    def is_as(self, endpoint: Endpoint) -> bool:
        """Whether it sends to this row of the endpoint just the same already."""
        return self.endpoint is not None and _how_to_send(self.endpoint) == _how_to_send(endpoint)

    @property
    def is_local(self) -> bool:
        """Whether it is reached without leaving the venue's network, or not at all."""
        return self.client is None or self.client.is_local

    @property
    def room(self) -> int:
        """How many attempts may start now."""
        return (1 if self.failing or self.offline else IN_FLIGHT_MAX) - self.in_flight

    def wakes_at(self, uptime: int) -> int | None:
        """When, after `uptime`, there may be something to send without any further notice."""
        at = self.paused_until or self.next_retry
        return None if self.endpoint is None or at is None or at <= uptime else at

    def wants(self, uptime: int) -> bool:
        """Whether there may be something to send now."""
        if self.endpoint is None or self.room <= 0 or (self.paused_until or 0) > uptime:
            return False
        self.paused_until = None
        return self._may_have_untried or self._has_retries(uptime)

    def expect(self, *, retries: bool = False) -> None:
        """A commit may have written something to send."""
        self._may_have_untried = True
        if retries:
            self.next_retry = 0

    def expect_retry(self, uptime: int) -> None:
        """A delivery is due again at `uptime`."""
        if self.next_retry is None or uptime < self.next_retry:
            self.next_retry = uptime

    def fall_behind(self) -> None:
        """What is pending now is a backlog that newer events may pass."""
        self._fell_behind = True

    def pause(self, until: int) -> None:
        """Send nothing before `until`; then look at everything again."""
        self.paused_until = until
        self.expect(retries=True)

    def come_back(self) -> None:
        """The box has a way to it again."""
        if self.offline:
            self.offline, self.paused_until = False, None
            self.fall_behind()

    def choose(self, reader: Reader, uptime: int, room: int) -> Iterator[DueDelivery]:
        """What starts now, at most `room`. Each has to `begin` before the next is asked for."""
        if self._fell_behind:
            self._backlog_end, self._fell_behind = newest_delivery(reader), False
        retries, places, share = self._has_retries(uptime), self.in_flight + room, room
        if retries or self._backlog_end:
            self._odd_is_fresh = not self._odd_is_fresh
            share = (room + self._odd_is_fresh) // 2
        yield from self._untried(reader, share, self._backlog_end)
        if retries:
            rows = iterate_retries(reader, self.endpoint_id, uptime)
            more, self._retries_are_contended = yield from self._startable(
                rows, places - self.in_flight
            )
            if not more:
                self.next_retry = find_next_retry(reader, self.endpoint_id, uptime)
        left = places - self.in_flight
        if self._backlog_end or (self._may_have_untried and left):
            yield from self._untried(reader, left, 0)
            if not self._may_have_untried:
                self._backlog_end = 0

    def _untried(self, reader: Reader, limit: int, after: int) -> Iterator[DueDelivery]:
        rows = iterate_untried(reader, self.endpoint_id, after)
        self._may_have_untried, self._is_contended = yield from self._startable(rows, limit)

    def _startable(
        self, rows: Iterator[DueDelivery], limit: int
    ) -> Generator[DueDelivery, None, tuple[bool, bool]]:
        """At most `limit` of `rows`, without what has to wait until an outcome is recorded.

        That is what is under way, which may be pending still by then, and what is about the
        same reservation. Returns whether there may be more, and whether some of it waits.
        """
        is_contended = False
        for delivery in rows:
            if delivery.seq in self._under_way or self._is_busy(delivery.reservation_id):
                is_contended = True
            elif limit:
                limit -= 1
                yield delivery
            else:
                return True, True
        return False, is_contended

    def _is_busy(self, reservation_id: str | None) -> bool:
        return reservation_id is not None and reservation_id in self._under_way.values()

    def _has_retries(self, uptime: int) -> bool:
        return self.next_retry is not None and self.next_retry <= uptime

    def begin(self, delivery: DueDelivery) -> None:
        """An attempt starts."""
        self._under_way[delivery.seq] = delivery.reservation_id
        self.in_flight += 1

    def end(self, outcome: Outcome | None) -> None:
        """An attempt is over; its outcome is not written yet."""
        self.in_flight -= 1
        if outcome is not None and outcome.charged:
            if self.failing and outcome.delivered:
                self.fall_behind()
            self.failing = not outcome.delivered

    def finish(self, seq: int) -> None:
        """The outcome of an attempt is written, or it is forgotten."""
        self._under_way.pop(seq, None)
        self._may_have_untried |= self._is_contended
        if self._retries_are_contended:
            self.next_retry = 0

    def request(self, delivery: DueDelivery, body: bytes, now: int) -> Request:
        """What is sent, signed with the time `now`, in ms since 1970."""
        secrets = [secret for secret, end in self._secrets if end is None or end > now]
        headers = {
            "X-Service-Event": delivery.event_type,
            "X-Service-Delivery": delivery.id,
            "X-Service-Signature": sign(secrets, now // 1000, body),
        }
        return Request(headers, body)

    def close(self) -> Client | None:
        """Send nothing more; the client that is to be closed."""
        client, self.client, self.endpoint, self.offline = self.client, None, None, False
        return client


def _how_to_send(endpoint: Endpoint) -> tuple[object, ...]:
    return (
        endpoint.url,
        endpoint.secret,
        endpoint.previous_secret,
        endpoint.previous_secret_expires_at,
        endpoint.ca,
        endpoint.pin,
    )
