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


def verify(secrets: Sequence[str], header: str, raw: bytes, now_ms: int) -> dict[str, Any]:
    """Check the `X-Service-Signature` of a raw body; any of `secrets` may have signed it.

    The steps as they are told, and their verdict: `valid`, `missing`, `too old` or `wrong`. The
    age is negative when the sender's clock is ahead; `expected` has one digest for each secret.
    """
    parts = [part.strip().partition("=") for part in header.split(",")]
    given = [value for name, _, value in parts if name == "v1"]
    stamp = next((value for name, _, value in parts if name == "t" and _is_number(value)), None)
    if stamp is None:
        return {"verdict": "missing", "t": None, "ageSeconds": None, "expected": [], "given": given}
    age = now_ms // 1000 - int(stamp)
    signed = stamp.encode() + b"." + raw
    expected = [hmac.digest(secret.encode(), signed, "sha256").hex() for secret in secrets]
    verdict = "valid" if set(expected) & set(given) else "wrong"
    if abs(age) > _TOLERANCE_SECONDS:
        verdict = "too old"
    return {
        "verdict": verdict,
        "t": int(stamp),
        "ageSeconds": age,
        "expected": expected,
        "given": given,
    }


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX


@dataclass(slots=True)
class EchoReceiver:
    """One receiver: how it answers, and what came as it is told, newest first, with its size."""

    mode: str = "normal"
    received: int = 0
    echoes: deque[tuple[dict[str, Any], int]] = field(
        default_factory=lambda: deque(maxlen=KEPT_DELIVERIES)
    )

    def note(self, **told: Any) -> None:
        """Keep what came, and forget the oldest of what is too much."""
        self.received += 1
        told["number"] = self.received
        self.echoes.appendleft((told, len(json.dumps(told, ensure_ascii=False).encode())))
        while sum(size for _, size in self.echoes) > KEPT_BYTES:
            self.echoes.pop()


class EchoReceivers:
    """The receivers in use lately. The one that nobody asked for longest is forgotten."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, EchoReceiver] = OrderedDict()

    def get(self, receiver_id: str) -> EchoReceiver:
        """The receiver of that id, empty when it is not remembered."""
        receiver = self._by_id.setdefault(receiver_id, EchoReceiver())
        self._by_id.move_to_end(receiver_id)
        if len(self._by_id) > KEPT_RECEIVERS:
            self._by_id.popitem(last=False)
        return receiver
