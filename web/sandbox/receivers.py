"""Echo receivers: how each answers, and its last deliveries with the steps of their check.

They are kept in memory alone. The steps are those of a partner (interface, sections 6.1 and 6.3).
"""

import hmac
import json
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

KEPT_DELIVERIES = 50
KEPT_BYTES = 256 * 1024  # of each receiver, as it is told
KEPT_RECEIVERS = 32
BODY_SHOWN = 16 * 1024
# The status that each mode answers with; `slow` takes SLOW_SECONDS to do it.
MODES = {"normal": 204, "slow": 204, "fail": 500}
SLOW_SECONDS = 5.0
_TOLERANCE_SECONDS = 300
_DIGITS_MAX = 15


@dataclass(frozen=True, slots=True)
class Verification:
    """The steps and their outcome: `valid`, `missing`, `too old` or `wrong`.

    `age` is in seconds, negative when the sender's clock is ahead. `expected` has one digest
    for each secret.
    """

    verdict: str
    t: int | None
    age: int | None
    expected: tuple[str, ...]
    given: tuple[str, ...]


def verify(secrets: Sequence[str], header: str, raw: bytes, now_ms: int) -> Verification:
    """Check the `X-Service-Signature` of a raw body; any of `secrets` may have signed it."""
    parts = [part.strip().partition("=") for part in header.split(",")]
    given = tuple(value for name, _, value in parts if name == "v1")
    stamps = [value for name, _, value in parts if name == "t" and _is_number(value)]
    if not stamps:
        return Verification("missing", None, None, (), given)
    age = now_ms // 1000 - int(stamps[0])
    signed = stamps[0].encode() + b"." + raw
    expected = tuple(hmac.digest(secret.encode(), signed, "sha256").hex() for secret in secrets)
    return Verification(_judge(age, expected, given), int(stamps[0]), age, expected, given)


def _judge(age: int, expected: Sequence[str], given: Sequence[str]) -> str:
    if abs(age) > _TOLERANCE_SECONDS:
        return "too old"
    fits = [
        hmac.compare_digest(ours.encode(), theirs.encode(errors="surrogatepass"))
        for ours in expected
        for theirs in given
    ]
    return "valid" if any(fits) else "wrong"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX


@dataclass(frozen=True, slots=True)
class Echo:
    """One request as it came in: the first BODY_SHOWN bytes of its body, and how many it had.

    `attempt` None: it is no delivery of this box.
    """

    number: int
    at: str
    attempt: int | None
    headers: Sequence[tuple[str, str]]
    shown: bytes
    size: int
    verification: Verification
    mode: str

    def told(self) -> dict[str, Any]:
        """As the page and a program read it."""
        names = {name.lower(): value for name, value in self.headers}
        steps = self.verification
        return {
            "number": self.number,
            "receivedAt": self.at,
            "event": names.get("x-service-event", ""),
            "delivery": names.get("x-service-delivery", ""),
            "attempt": self.attempt,
            "headers": [list(header) for header in self.headers],
            "body": self.shown.decode("utf-8", "backslashreplace"),
            "bodyBytes": self.size,
            "signature": {
                "verdict": steps.verdict,
                "t": steps.t,
                "ageSeconds": steps.age,
                "expected": list(steps.expected),
                "given": list(steps.given),
            },
            "answer": {"mode": self.mode, "status": MODES[self.mode]},
        }


@dataclass(slots=True)
class EchoReceiver:
    """One receiver: how it answers, and what came, newest first, with its size.

    `watched_at` is when somebody looked last, in seconds of the clock's `monotonic`.
    """

    watched_at: float
    mode: str = "normal"
    received: int = 0
    echoes: deque[tuple[Echo, int]] = field(default_factory=lambda: deque(maxlen=KEPT_DELIVERIES))

    def note(self, echo: Echo) -> None:
        """Keep what came, and forget the oldest of what is too much."""
        self.echoes.appendleft((echo, len(json.dumps(echo.told(), ensure_ascii=False).encode())))
        while sum(size for _, size in self.echoes) > KEPT_BYTES:
            self.echoes.pop()

    def after(self, number: int) -> list[Echo]:
        """What came after that number, newest first."""
        return [echo for echo, _ in self.echoes if echo.number > number]


class EchoReceivers:
    """The receivers in use lately. The one that nobody asked about for longest is forgotten."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, EchoReceiver] = OrderedDict()

    def get(self, receiver_id: str, now: float) -> EchoReceiver:
        """The receiver of that id, empty and watched `now` when it is not remembered."""
        receiver = self._by_id.setdefault(receiver_id, EchoReceiver(now))
        self._by_id.move_to_end(receiver_id)
        if len(self._by_id) > KEPT_RECEIVERS:
            self._by_id.popitem(last=False)
        return receiver
