"""What the dispatcher keeps in memory of one endpoint: its lane, its client and its secrets."""

from collections.abc import Sequence

from appliance.model.delivery import DueDelivery, Outcome
from appliance.model.endpoint import Endpoint
from appliance.tokens import Keyring
from appliance.webhooks.client import Client
from appliance.webhooks.lane import Lane
from appliance.webhooks.outcomes import GUARD
from appliance.webhooks.receiver import Receiver
from appliance.webhooks.signature import sign

USER_AGENT = "venuebox-webhooks/1"


class Recipient:
    """An active endpoint, ready to be sent to."""

    def __init__(
        self, endpoint: Endpoint, lane: Lane, client: Client | None, keyring: Keyring
    ) -> None:
        """`client` None: the settings no longer allow this URL, and every attempt is blocked."""
        self.endpoint = endpoint
        self.lane = lane
        self.client = client
        self._secret = keyring.unwrap(endpoint.secret).decode()
        previous = endpoint.previous_secret
        self._previous = None if previous is None else keyring.unwrap(previous).decode()
        self._start = b"" if client is None else _request_start(client.receiver)

    @property
    def is_local(self) -> bool:
        """Whether it is reached without leaving the house, or not at all."""
        return self.client is None or self.client.is_local

    def request(self, delivery: DueDelivery, body: bytes, now: int) -> bytes:
        """What is sent, signed with the time `now`, in ms since 1970."""
        signature = sign(self._secrets(now), now // 1000, body)
        head = (
            f"X-Service-Event: {delivery.event_type}\r\n"
            f"X-Service-Delivery: {delivery.id}\r\n"
            f"X-Service-Signature: {signature}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return self._start + head.encode() + body

    async def post(self, request: bytes) -> Outcome:
        """One attempt."""
        return Outcome(GUARD, "blocked") if self.client is None else await self.client.post(request)

    async def reach(self) -> str | None:
        """What prevents a connection to it, None when nothing does. Sends nothing."""
        return "blocked" if self.client is None else await self.client.reach()

    def serves(self, endpoint: Endpoint) -> bool:
        """Whether it would send to this row of `endpoint` just the same."""
        return _how_to_send(self.endpoint) == _how_to_send(endpoint)

    def close(self) -> None:
        """Drop its idle connections."""
        if self.client is not None:
            self.client.close()

    def _secrets(self, now: int) -> Sequence[str]:
        """The secret, and for 24 hours after a roll the one before it too."""
        expires_at = self.endpoint.previous_secret_expires_at or 0
        if self._previous is None or expires_at <= now:
            return (self._secret,)
        return (self._secret, self._previous)


def _how_to_send(endpoint: Endpoint) -> tuple[object, ...]:
    return (
        endpoint.url,
        endpoint.secret,
        endpoint.previous_secret,
        endpoint.previous_secret_expires_at,
        endpoint.ca,
        endpoint.pin,
    )


def _request_start(receiver: Receiver) -> bytes:
    return (
        f"POST {receiver.target} HTTP/1.1\r\n"
        f"Host: {receiver.authority}\r\n"
        f"User-Agent: {USER_AGENT}\r\n"
        "Accept: */*\r\n"
        "Accept-Encoding: identity\r\n"
        "Content-Type: application/json\r\n"
    ).encode()
