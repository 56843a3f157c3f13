"""Decide scans at a bridge: ask the box or, while it is unreachable, use the stored snapshot."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from appliance.clock import Clock, ZoneDatabase, format_instant, parse_instant
from appliance.core.errors import log_exception
from appliance.core.tokens import Tokens
from appliance.door.guest_pass import is_pass
from appliance.door.verdict import COLOURS
from terminal_bridge.agent.client import BoxClient, NotPaired, OutOfReach, Refused
from terminal_bridge.agent.offline import Context, Snapshot, decide_offline, read_snapshot
from terminal_bridge.agent.spool import Spool, SpooledScan
from terminal_bridge.scanners.scanner import ARRIVALS, Answer, Undecided

log = logging.getLogger(__name__)

RENEW_SECONDS = 60.0
_SETTLE_SECONDS = 0.5  # wait after a change, so that several changes are synced at once
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 10.0
_BATCH = 50
_CLOCK_TOLERANCE_MS = 1000  # a smaller difference from the box's clock may be network delay
_REVOKED = "Ce terminal n'est plus relié à la box : appelez le responsable."


class Agent:
    """Stores each scan in the spool, then decides it. Handles one scan at a time."""

    def __init__(
        self, spool: Spool, client: BoxClient, clock: Clock, tokens: Tokens, zones: ZoneDatabase
    ) -> None:
        self.spool = spool
        self.client = client
        self.is_online = False
        self.revoked = False
        self.on_lost: Callable[[], None] = lambda: None
        self._clock = clock
        self._tokens = tokens
        self._zones = zones
        self._snapshot: Snapshot | None = None
        self._ahead = 0
        self._noted_before_contact: list[str] = []  # scan ids
        self._has_box_clock = False
        self._offline_reason = ""
        self._turn = asyncio.Lock()

    async def load(self) -> None:
        """Load the stored snapshot after a restart."""
        signed = await self.spool.find_snapshot()
        self._snapshot = read_snapshot(signed, self.client.identity) if signed else None

    def now(self) -> int:
        """Return the estimated time on the box's clock, in ms since 1970."""
        return self._clock.now() + self._ahead

    async def __call__(self, code: str) -> Answer:
        """Decide `code`. When this returns, the scan and its result are on disk.

        Raises Undecided if the bridge is revoked or the box rejects the scan.
        """
        async with self._turn:
            now = self.now()
            scan_id = await self.spool.note(self._tokens.new_id(now), code, now)
            if not self._has_box_clock:
                self._noted_before_contact.append(scan_id)
            if self.revoked:
                raise await self._record_error(scan_id, _REVOKED)
            if self.is_online:
                try:
                    return await self._ask(scan_id, code, now)
                except OutOfReach as error:
                    self.go_offline(str(error))
            return await self._decide_here(scan_id, code)

    async def _ask(self, scan_id: str, code: str, now: int) -> Answer:
        body = {"scanId": scan_id, "code": code, "at": format_instant(now), "arrivals": ARRIVALS}
        try:
            verdict = await self.client.scan(body)
            answer = Answer.of(verdict)
            reservation = verdict.get("reservation") or {}
            found, admitted = reservation.get("id"), int(verdict.get("admitted") or 0)
        except NotPaired:
            await self.revoke()
            raise await self._record_error(scan_id, _REVOKED) from None
        except Refused as error:
            raise await self._record_error(scan_id, error.sentence) from None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise OutOfReach("the box's response is invalid") from None
        await self.spool.decide(scan_id, answer.result, found, admitted, settled=True)
        return answer

    async def _record_error(self, scan_id: str, sentence: str) -> Undecided:
        """Record that a scan was rejected and admitted nobody. Return the error to raise."""
        await self.spool.decide(scan_id, "error", None, 0, settled=True)
        return Undecided(sentence)

    async def _decide_here(self, scan_id: str, code: str) -> Answer:
        arrived = await self.spool.count_arrived()
        context = Context(self.client.identity, self._snapshot, arrived, self._zones, self.now())
        decision = decide_offline(code, context)
        await self.spool.decide(
            scan_id, decision.result, decision.reservation_id, decision.admitted, settled=False
        )
        self.on_lost()
        return decision.answer

    def go_offline(self, reason: str) -> None:
        """Decide scans offline until `go_online` succeeds. Each new reason is logged once."""
        if reason != self._offline_reason:
            log.warning("agent: the box is unreachable (%s), so scans are decided offline", reason)
        self.is_online, self._offline_reason = False, reason
        self.on_lost()

    async def go_online(self) -> bool:
        """Let the box decide scans again if every scan is synced. Return False if one is not."""
        async with self._turn:
            if await self.spool.list_open(1):
                return False
            if not self.is_online:
                log.warning("agent: the box is reachable again, so the box decides who is admitted")
            self.is_online, self.revoked, self._offline_reason = True, False, ""
            return True

    async def set_clock(self, box_time: str) -> None:
        """Use the box's clock from now on. `box_time` is the box's current time.

        The bridge's own clock may be wrong, because a small computer may have no real-time clock.
        At the first contact, also correct the times of the scans since the start.
        """
        ahead = parse_instant(box_time) - self._clock.now()
        async with self._turn:
            self._ahead = 0 if abs(ahead) < _CLOCK_TOLERANCE_MS else ahead
            if not self._has_box_clock:
                await self.spool.correct(self._noted_before_contact, self._ahead)
                self._noted_before_contact, self._has_box_clock = [], True

    async def renew_snapshot(self) -> None:
        """Fetch and store the snapshot for offline decisions."""
        counted = await self.spool.list_settled()
        signed = await self.client.snapshot()
        snapshot = read_snapshot(signed, self.client.identity)
        if snapshot is None:
            log.error("agent: the snapshot is ignored because it is invalid or not from this venue")
            return
        async with self._turn:
            await self.spool.keep_snapshot(signed, counted, self.now())
            self._snapshot = snapshot

    async def revoke(self) -> None:
        """Reject all scans and delete the snapshot, because the box has revoked this bridge."""
        if not self.revoked:
            log.error("agent: the box revoked this bridge. Pair it again with --pair.")
        self.is_online, self.revoked, self._snapshot = False, True, None
        await self.spool.forget_snapshot()


class Link:
    """Keeps the agent connected and synced while the bridge runs."""

    def __init__(self, agent: Agent, folder: Path) -> None:
        """Create the link. It updates `bridge.json` in `folder` if the box's details change."""
        self._agent = agent
        self._folder = folder
        self._wake = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        agent.on_lost = self._wake.set

    async def run(self) -> None:
        """Connect and sync until cancelled."""
        wait = _FIRST_WAIT
        try:
            while True:
                self._wake.clear()
                if await self._try():
                    wait = _FIRST_WAIT
                    await self._wait()
                else:
                    await asyncio.sleep(wait)
                    wait = min(wait * 2, _LONGEST_WAIT)
        finally:
            if self._listening is not None:
                self._listening.cancel()
                await asyncio.gather(self._listening, return_exceptions=True)

    async def _try(self) -> bool:
        """Connect and sync once. Return whether the box was reached and every scan is synced."""
        try:
            try:
                await self._connect()
            except NotPaired:
                await self._agent.revoke()
                return False
        except OutOfReach as error:
            self._agent.go_offline(str(error))
        except Exception as error:  # noqa: BLE001 - the bridge continues offline
            self._agent.go_offline("unexpected error")
            log_exception("agent: sync", error)
        else:
            return True
        return False

    async def _wait(self) -> None:
        """Wait until the snapshot is due, the connection is lost, or something changes."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._agent.client.listen(self._wake.set))
        with suppress(TimeoutError):
            async with asyncio.timeout(RENEW_SECONDS):
                await self._wake.wait()
        await asyncio.sleep(_SETTLE_SECONDS)

    async def _connect(self) -> None:
        agent = self._agent
        me = await agent.client.me()
        await agent.set_clock(me["boxTime"])
        identity = agent.client.identity.introduced(me)
        if identity != agent.client.identity:
            identity.save(self._folder)
            agent.client.identity = identity
        await self._sync()
        await agent.renew_snapshot()
        while not await agent.go_online():  # more scans were decided offline during the sync
            await self._sync()

    async def _sync(self) -> None:
        """Send all offline scans, oldest first.

        If the box rejects a batch, send the oldest scans one by one until one is rejected. Mark
        that scan as settled, with the reason as its remark. Then continue with full batches.
        """
        size = _BATCH
        while batch := await self._agent.spool.list_open(size):
            try:
                await self._send(batch)
            except Refused as error:
                if len(batch) == 1:
                    log.warning("agent: the box rejected an offline scan: %s", error)
                    await self._agent.spool.settle([(batch[0].scan_id, f"refused: {error}")])
                size = _BATCH if len(batch) == 1 else 1

    async def _send(self, batch: list[SpooledScan]) -> None:
        agent = self._agent
        sent_at = format_instant(agent.now())
        results = await agent.client.sync([_to_wire(scan) for scan in batch], sent_at)
        scans = {scan.scan_id: scan for scan in batch}
        settled = [
            (result["scanId"], _remark(scans[result["scanId"]], result))
            for result in results
            if result["scanId"] in scans
        ]
        if not settled:
            raise OutOfReach("the box returned no result for any synced scan")
        await agent.spool.settle(settled)


def _to_wire(scan: SpooledScan) -> dict[str, Any]:
    wire: dict[str, Any] = {"scanId": scan.scan_id, "code": scan.code, "shown": scan.result}
    wire["at"] = format_instant(scan.at)
    if scan.admitted > 0:
        wire["arrivals"] = scan.admitted
    # A pass identifies its guest, but the box might match a typed code to a different guest.
    # Therefore send the reservation that the bridge has chosen.
    if scan.reservation_id is not None and not is_pass(scan.code):
        wire["reservationId"] = scan.reservation_id
    return wire


def _remark(scan: SpooledScan, result: dict[str, Any]) -> str | None:
    """Return a remark if the box disagrees with an offline admission, otherwise None.

    The remark is also logged.
    """
    if result.get("conflict"):
        remark = "conflict"
    elif COLOURS.get(scan.result) == "green" and result["colour"] != "green":
        remark = f"the box had decided {result['result']}, but its response came too late"
    else:
        return None
    log.warning("agent: the box disagrees with an offline admission: %s", remark)
    return remark
