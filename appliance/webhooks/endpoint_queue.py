"""An endpoint's queue decides which deliveries to send, in which order, and how many at once."""

from collections.abc import Iterator
from operator import attrgetter

from appliance.core.tokens import EnvironmentName, Keyring
from appliance.database.connection import Reader
from appliance.webhooks.client import Client, Request
from appliance.webhooks.deliveries import (
    LONGEST_WAIT_MS,
    DueDelivery,
    Outcome,
    find_next_retry,
    iterate_new,
    iterate_retries,
)
from appliance.webhooks.endpoints import Endpoint
from appliance.webhooks.payload import sign

IN_FLIGHT_MAX = 6
_BACKLOG_MS = 10_000

# The columns that decide how deliveries are sent. If one of them changes, a new client is needed.
_transport = attrgetter("url", "secret", "previous_secret", "previous_secret_expires_at", "ca")


class EndpointQueue:
    """The queue of one endpoint.

    Up to 6 deliveries are in flight, or 1 while the endpoint is failing. Two deliveries for the
    same reservation are never sent together, and their first attempts keep their order. Half of
    the attempts are for events of the last 10 s, so that these do not wait behind a backlog. The
    other half are for replays, then for retries that are due, then for the oldest first attempts.
    """

    def __init__(self, endpoint_id: str) -> None:
        self.endpoint_id = endpoint_id
        self.endpoint: Endpoint | None = None  # None if it is deactivated
        self.client: Client | None = None  # None if the settings do not allow its URL
        self.in_flight = 0
        self.failing = False
        self.offline = False
        self.paused_until: float | None = None  # by the monotonic clock, in seconds
        self._next_retry: int | None = 0  # in ms since 1970
        self._has_changed = True  # there may be new deliveries to send
        self._odd_is_fresh = False
        self._some_wait = False  # deliveries were skipped for others of their reservation
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

    def seconds_left(self, now: int, monotonic: float) -> float | None:
        """Return the time until a delivery may be due, or None if no later one is known."""
        if self.endpoint is None:
            return None
        if self.paused_until is not None:
            return max(0.0, self.paused_until - monotonic)
        wait = 0 if self._next_retry is None else self._next_retry - now
        return wait / 1000 if 0 < wait <= LONGEST_WAIT_MS else None

    def wants(self, now: int, monotonic: float) -> bool:
        """Whether there may be deliveries to send now."""
        if self.endpoint is None or self.room <= 0 or (self.paused_until or 0) > monotonic:
            return False
        self.paused_until = None
        return self._has_changed or self._has_retries(now)

    def expect(self, *, retries: bool = False) -> None:
        """Look for new deliveries on the next call to `choose`, and with `retries` for retries."""
        self._has_changed = True
        if retries:
            self._next_retry = 0

    def expect_retry(self, due_at: int) -> None:
        """Look for retries at `due_at` (ms since 1970)."""
        if self._next_retry is None or due_at < self._next_retry:
            self._next_retry = due_at

    def pause(self, until: float) -> None:
        """Send nothing until the monotonic clock shows `until` (s), then due deliveries."""
        self.paused_until = until
        self.expect(retries=True)

    def resume(self) -> None:
        """Send deliveries again after the box has been offline."""
        if self.offline:
            self.offline, self.paused_until = False, None

    def choose(self, reader: Reader, now: int, room: int) -> Iterator[DueDelivery]:
        """Yield up to `room` deliveries to send now.

        Call `begin` with each delivery before taking the next one.
        """
        self._odd_is_fresh = not self._odd_is_fresh
        places, id_ = self.in_flight + room, self.endpoint_id
        fresh = iterate_new(reader, id_, since=now - _BACKLOG_MS)
        yield from self._startable(fresh, (room + self._odd_is_fresh) // 2)
        if self._has_retries(now):
            rest = iterate_retries(reader, id_, now)
            yield from self._startable(rest, places - self.in_flight)
            self._next_retry = find_next_retry(reader, id_)
        yield from self._startable(iterate_new(reader, id_), places - self.in_flight)
        self._has_changed = self.in_flight >= places

    def _startable(self, rows: Iterator[DueDelivery], limit: int) -> Iterator[DueDelivery]:
        """Yield at most `limit` rows.

        Skips deliveries that are in flight or whose outcome is not recorded yet. Also skips other
        deliveries for the same reservations.
        """
        for delivery in rows if limit > 0 else ():
            if delivery.seq in self._under_way:
                continue
            if self._is_busy(delivery.reservation_id):
                self._some_wait = True
            else:
                yield delivery
                limit -= 1
                if limit <= 0:
                    return

    def _is_busy(self, reservation_id: str | None) -> bool:
        return reservation_id is not None and reservation_id in self._under_way.values()

    def _has_retries(self, now: int) -> bool:
        at = self._next_retry
        return at is not None and not now < at <= now + LONGEST_WAIT_MS

    def begin(self, delivery: DueDelivery) -> None:
        """Record that an attempt starts."""
        self._under_way[delivery.seq] = delivery.reservation_id
        self.in_flight += 1

    def end(self, outcome: Outcome) -> None:
        """Record that an attempt has ended. Its outcome is not stored yet."""
        self.in_flight -= 1
        if outcome.charged:
            self.failing = not outcome.delivered

    def finish(self, seq: int) -> None:
        """Record that an attempt's outcome was stored or discarded."""
        self._under_way.pop(seq, None)
        self._has_changed |= self._some_wait
        self._some_wait = False

    def request(
        self, delivery: DueDelivery, environment: EnvironmentName, venue_id: str, body: bytes,
        now: int, sent: int,
    ) -> Request:  # fmt: skip
        """Return the request to send, signed with the time `sent`. Both times are in ms since 1970.

        `now` is the box's time, by which the previous secret expires.
        """
        secrets = [secret for secret, end in self._secrets if end is None or end > now]
        headers = {
            "X-Service-Event": delivery.event_type,
            "X-Service-Delivery": delivery.id,
            "X-Service-Event-Id": delivery.event_id,
            "X-Service-Environment": environment,
            "X-Service-Venue": venue_id,
            "X-Service-Attempt": str(delivery.attempts + 1),
            "X-Service-Signature": sign(secrets, sent // 1000, body),
        }
        return Request(headers, body)

    def close(self) -> Client | None:
        """Stop sending. Returns the client, which the caller must close."""
        client, self.client, self.endpoint, self.offline = self.client, None, None, False
        return client
