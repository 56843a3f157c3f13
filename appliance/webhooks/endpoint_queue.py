"""An endpoint's queue decides which deliveries to send, in which order, and how many at once."""

from collections.abc import Generator, Iterator
from operator import attrgetter

from appliance.core.tokens import EnvironmentName, Keyring
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

# The columns that decide how deliveries are sent. If one of them changes, a new client is needed.
_transport = attrgetter(
    "url", "secret", "previous_secret", "previous_secret_expires_at", "ca", "pin"
)


class EndpointQueue:
    """The queue of one endpoint.

    Up to 6 deliveries are in flight, or 1 while the endpoint is failing. Two deliveries for the
    same reservation are never in flight at once, and their first attempts keep their order. After
    an outage, the pending deliveries form a backlog. While there is a backlog or a retry is due,
    half of the attempts are for newer deliveries, so that these do not have to wait. The other half
    are for retries that are due, then for the oldest first attempts.
    """

    def __init__(self, endpoint_id: str) -> None:
        self.endpoint_id = endpoint_id
        self.endpoint: Endpoint | None = None  # None if it is deactivated
        self.client: Client | None = None  # None if the settings do not allow its URL
        self.in_flight = 0
        self.failing = False
        self.offline = False
        self.paused_until: int | None = None  # an uptime in ms
        self.next_retry: int | None = 0  # an uptime in ms
        self._may_have_untried = True
        # True if deliveries were skipped because another delivery is in flight.
        self._skipped_untried = self._skipped_retries = False
        self._starts_backlog = True
        self._backlog_end = 0  # `seq` of the backlog's last delivery, or 0 if there is none
        self._begun = 0  # attempts for all new deliveries up to this `seq` have begun
        self._odd_is_fresh = False
        self._under_way: dict[int, str | None] = {}  # maps delivery seq to reservation id
        self._secrets: list[tuple[str, int | None]] = []  # (secret, expiry in ms since 1970)

    def follow(self, endpoint: Endpoint, client: Client | None, keyring: Keyring) -> None:
        """Use the URL and the secrets of `endpoint` from now on."""
        self.endpoint, self.client = endpoint, client
        self._secrets = [(keyring.unwrap(endpoint.secret).decode(), None)]
        if endpoint.previous_secret is not None:
            previous = keyring.unwrap(endpoint.previous_secret).decode()
            self._secrets.append((previous, endpoint.previous_secret_expires_at or 0))

    def sends_as(self, endpoint: Endpoint) -> bool:
        """Whether the queue already uses the URL, secrets and certificates of `endpoint`."""
        return self.endpoint is not None and _transport(self.endpoint) == _transport(endpoint)

    @property
    def is_local(self) -> bool:
        """Whether the receiver is on the venue's network, or its URL is not allowed."""
        return self.client is None or self.client.is_local

    @property
    def room(self) -> int:
        """The number of attempts that may start now."""
        return (1 if self.failing or self.offline else IN_FLIGHT_MAX) - self.in_flight

    def wakes_at(self, uptime: int) -> int | None:
        """Return the next time after `uptime` at which deliveries may be due, or None."""
        at = self.paused_until or self.next_retry
        return None if self.endpoint is None or at is None or at <= uptime else at

    def wants(self, uptime: int) -> bool:
        """Whether there may be deliveries to send now."""
        if self.endpoint is None or self.room <= 0 or (self.paused_until or 0) > uptime:
            return False
        self.paused_until = None
        return self._may_have_untried or self._has_retries(uptime)

    def expect(self, *, retries: bool = False) -> None:
        """Look for new deliveries on the next call to `choose`.

        With `retries`, look for all pending deliveries that are due.
        """
        self._may_have_untried = True
        if retries:
            self.next_retry = self._begun = 0

    def expect_retry(self, uptime: int) -> None:
        """Look for retries when the uptime reaches `uptime` (ms)."""
        if self.next_retry is None or uptime < self.next_retry:
            self.next_retry = uptime

    def start_backlog(self) -> None:
        """Treat the pending deliveries as a backlog. Newer deliveries may be sent before them."""
        self._starts_backlog = True

    def pause(self, until: int) -> None:
        """Send nothing until the uptime reaches `until` (ms), then look for all due deliveries."""
        self.paused_until = until
        self.expect(retries=True)

    def resume(self) -> None:
        """Send deliveries again after the box has been offline."""
        if self.offline:
            self.offline, self.paused_until = False, None
            self.start_backlog()

    def choose(self, reader: Reader, uptime: int, room: int) -> Iterator[DueDelivery]:
        """Yield up to `room` deliveries to send now.

        Call `begin` with each delivery before taking the next one.
        """
        if self._starts_backlog:
            self._backlog_end, self._starts_backlog = newest_delivery(reader), False
        if self._begun >= self._backlog_end:
            self._backlog_end = 0
        retries, places, share = self._has_retries(uptime), self.in_flight + room, room
        if retries or self._backlog_end:
            self._odd_is_fresh = not self._odd_is_fresh
            share = (room + self._odd_is_fresh) // 2
        yield from self._untried(reader, share, self._backlog_end)
        if retries:
            rows = iterate_retries(reader, self.endpoint_id, uptime)
            room = places - self.in_flight
            more, self._skipped_retries, _ = yield from self._startable(rows, room)
            if not more:
                self.next_retry = find_next_retry(reader, self.endpoint_id, uptime)
        left = places - self.in_flight
        if self._backlog_end or (self._may_have_untried and left):
            yield from self._untried(reader, left, 0)
            if not self._may_have_untried:
                self._backlog_end = 0

    def _untried(self, reader: Reader, limit: int, after: int) -> Iterator[DueDelivery]:
        rows = iterate_untried(reader, self.endpoint_id, max(after, self._begun), after)
        more, skipped, begun = yield from self._startable(rows, limit)
        self._may_have_untried, self._skipped_untried = more, skipped
        if after <= self._begun:
            self._begun = max(self._begun, begun)

    def _startable(
        self, rows: Iterator[DueDelivery], limit: int
    ) -> Generator[DueDelivery, None, tuple[bool, bool, int]]:
        """Yield at most `limit` rows.

        Skips deliveries that are in flight or whose outcome is not recorded yet. Also skips other
        deliveries for the same reservations. Return whether more rows remain, whether any was
        skipped, and the `seq` up to which no row is waiting for another one.
        """
        skipped = waits = False
        begun = 0
        for delivery in rows:
            if delivery.seq in self._under_way:
                skipped = True
            elif self._is_busy(delivery.reservation_id):
                skipped = waits = True
            elif limit:
                limit -= 1
                yield delivery
            else:
                return True, True, begun
            if not waits:
                begun = delivery.seq
        return False, skipped, begun

    def _is_busy(self, reservation_id: str | None) -> bool:
        return reservation_id is not None and reservation_id in self._under_way.values()

    def _has_retries(self, uptime: int) -> bool:
        return self.next_retry is not None and self.next_retry <= uptime

    def begin(self, delivery: DueDelivery) -> None:
        """Record that an attempt starts."""
        self._under_way[delivery.seq] = delivery.reservation_id
        self.in_flight += 1

    def end(self, outcome: Outcome | None) -> None:
        """Record that an attempt has ended. Its outcome is not stored yet."""
        self.in_flight -= 1
        if outcome is not None and outcome.charged:
            if self.failing and outcome.delivered:
                self.start_backlog()
            self.failing = not outcome.delivered

    def finish(self, seq: int) -> None:
        """Record that an attempt's outcome was stored or discarded."""
        self._under_way.pop(seq, None)
        self._may_have_untried |= self._skipped_untried
        if self._skipped_retries:
            self.next_retry = 0

    def request(
        self, delivery: DueDelivery, environment: EnvironmentName, body: bytes, now: int
    ) -> Request:
        """Return the request to send, signed with the time `now` (ms since 1970)."""
        secrets = [secret for secret, end in self._secrets if end is None or end > now]
        headers = {
            "X-Service-Event": delivery.event_type,
            "X-Service-Delivery": delivery.id,
            "X-Service-Event-Id": delivery.event_id,
            "X-Service-Environment": environment,
            "X-Service-Attempt": str(delivery.attempts + 1),
            "X-Service-Signature": sign(secrets, now // 1000, body),
        }
        return Request(headers, body)

    def close(self) -> Client | None:
        """Stop sending. Returns the client, which the caller must close."""
        client, self.client, self.endpoint, self.offline = self.client, None, None, False
        return client
