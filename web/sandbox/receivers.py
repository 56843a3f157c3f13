"""What echo receivers remember: the last deliveries of each, in memory alone."""

import json
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from web.sandbox.behaviour import Behaviour
from web.sandbox.verification import Verification

KEPT_DELIVERIES = 50
KEPT_BYTES = 256 * 1024  # of each receiver, as it is told
KEPT_RECEIVERS = 32
BODY_SHOWN = 16 * 1024


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
    behaviour: Behaviour

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
            "answer": {"mode": self.behaviour.mode, **_answer(self.behaviour)},
        }


def _answer(behaviour: Behaviour) -> dict[str, Any]:
    match behaviour.mode:
        case "slow":
            return {"status": 204, "seconds": behaviour.seconds}
        case "fail":
            return {"status": behaviour.status}
        case "timeout" | "close":
            return {"status": None}
    return {"status": 204}


@dataclass(slots=True)
class EchoReceiver:
    """One receiver: how it answers, and what came, newest first, with its size.

    `watched_at` is when somebody looked last, in seconds of the clock's `monotonic`.
    """

    watched_at: float
    behaviour: Behaviour = field(default_factory=Behaviour)
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
