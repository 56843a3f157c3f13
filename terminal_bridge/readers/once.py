"""The same code shown twice at once is one scan: people hold a pass until something happens."""

import asyncio
from dataclasses import dataclass, replace

from appliance.clock import Clock
from terminal_bridge.readers.answer import Answer, Decide

REPEATED_WITHIN_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class _Shown:
    at: float
    decision: asyncio.Future[Answer]


class Once:
    """Decides each code once in three seconds; a repetition gets the same answer, marked so."""

    def __init__(self, decide: Decide, clock: Clock) -> None:
        self._decide = decide
        self._clock = clock
        self._shown: dict[str, _Shown] = {}

    async def __call__(self, code: str) -> Answer:
        """The answer to `code`. One of our own faults is not repeated: the next scan tries."""
        now = self._clock.monotonic()
        self._shown = {
            text: shown
            for text, shown in self._shown.items()
            if 0 <= now - shown.at < REPEATED_WITHIN_SECONDS
        }
        is_repeated = code in self._shown
        if not is_repeated:
            self._shown[code] = _Shown(now, asyncio.ensure_future(self._decide(code)))
        decision = self._shown[code].decision
        try:
            answer = await asyncio.shield(decision)
        except Exception:
            self._shown.pop(code, None)
            raise
        if answer.colour == "grey":
            self._shown.pop(code, None)
        return replace(answer, is_repeated=is_repeated)
