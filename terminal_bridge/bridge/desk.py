"""Where a bridge's scans are decided: by the box when it answers, here when it does not."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from appliance.clock import Clock, ZoneDatabase, format_instant, parse_instant
from appliance.tokens import Tokens
from terminal_bridge.bridge.client import BoxClient, NotPaired, OutOfReach, Refused
from terminal_bridge.bridge.offline import Known, Local, decide_offline
from terminal_bridge.bridge.snapshot import Snapshot, read_snapshot
from terminal_bridge.bridge.spool import Spool
from terminal_bridge.readers.reader import ARRIVALS, Answer, Undecided, answer_of

log = logging.getLogger(__name__)

_OWN_DELAY_MS = 1000  # a clock that differs by less is right; the rest is the network's delay


class Desk:
    """Decides one scan at a time. Each is in the spool before anybody asks about it."""

    def __init__(
        self, spool: Spool, client: BoxClient, clock: Clock, tokens: Tokens, zones: ZoneDatabase
    ) -> None:
        self.spool = spool
        self.client = client
        self.up = False
        self.revoked = False
        self.on_lost: Callable[[], None] = lambda: None
        self._clock = clock
        self._tokens = tokens
        self._zones = zones
        self._snapshot: Snapshot | None = None
        self._ahead = 0
        self._turn = asyncio.Lock()

    async def load(self) -> None:
        """Take up what was kept before a restart."""
        signed = await self.spool.find_snapshot()
        self._snapshot = read_snapshot(signed, self.client.identity) if signed else None

    def now(self) -> int:
        """Ms since 1970 by the box's clock, as well as the bridge knows it."""
        return self._clock.now() + self._ahead

    async def __call__(self, code: str) -> Answer:
        """The answer to `code`, which is on this disk with its outcome when it is given."""
        async with self._turn:
            now = self.now()
            scan_id = await self.spool.note(self._tokens.new_id(now), code, now)
            if self.revoked:
                raise await self._refuse(scan_id, _REVOKED)
            if self.up:
                try:
                    return await self._ask(scan_id, code, now)
                except OutOfReach as why:
                    self.lose(str(why))
            return await self._decide_here(scan_id, code)

    async def _ask(self, scan_id: str, code: str, now: int) -> Answer:
        body = {"scanId": scan_id, "code": code, "at": format_instant(now), "arrivals": ARRIVALS}
        try:
            verdict = await self.client.scan(body)
            answer = answer_of(verdict)
            reservation = verdict.get("reservation") or {}
            found, admitted = reservation.get("id"), int(verdict.get("admitted") or 0)
        except NotPaired:
            await self.revoke()
            raise await self._refuse(scan_id, _REVOKED) from None
        except Refused as refusal:
            raise await self._refuse(scan_id, str(refusal)) from None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise OutOfReach("the box's answer makes no sense") from None
        await self.spool.decide(scan_id, answer.result, found, admitted, settled=True)
        return answer

    async def _refuse(self, scan_id: str, sentence: str) -> Undecided:
        """Nobody was let in, and the box wants to hear nothing of it."""
        await self.spool.decide(scan_id, "error", None, 0, settled=True)
        return Undecided(sentence)

    async def _decide_here(self, scan_id: str, code: str) -> Answer:
        local: Local = decide_offline(
            code,
            Known(
                identity=self.client.identity,
                snapshot=self._snapshot,
                arrived=await self.spool.count_arrived(),
                zones=self._zones,
                now=self.now(),
            ),
        )
        await self.spool.decide(
            scan_id, local.result, local.reservation_id, local.admitted, settled=False
        )
        self.on_lost()
        return local.answer

    def lose(self, why: str) -> None:
        """From now on this bridge decides itself, until everything it did is with the box."""
        if self.up:
            log.warning("on our own: %s", why)
        self.up = False
        self.on_lost()

    async def find(self) -> bool:
        """Let the box decide again, if it has heard of everything; whether it has."""
        async with self._turn:
            if await self.spool.count_waiting():
                return False
            if not self.up:
                log.warning("the box decides")
            self.up, self.revoked = True, False
            return True

    def set_clock(self, box_time: str) -> None:
        """Go by the box's clock: a small computer may have none of its own."""
        ahead = parse_instant(box_time) - self._clock.now()
        self._ahead = 0 if abs(ahead) < _OWN_DELAY_MS else ahead

    async def renew_snapshot(self) -> None:
        """Fetch and keep the list for the time when the box is out of reach."""
        counted = await self.spool.list_settled()
        signed: dict[str, Any] = await self.client.snapshot()
        snapshot = read_snapshot(signed, self.client.identity)
        if snapshot is None:
            log.error("the box's snapshot is not signed by its key: it is not used")
            return
        async with self._turn:
            await self.spool.keep_snapshot(signed, counted, self.now())
            self._snapshot = snapshot

    async def revoke(self) -> None:
        """The box does not know this bridge any more: it forgets the guests."""
        if not self.revoked:
            log.error("the box does not know this bridge any more: pair it again with --pair")
        self.up, self.revoked, self._snapshot = False, True, None
        await self.spool.forget_snapshot()


_REVOKED = "Ce terminal n'est plus relié à la box : appelez le responsable."
