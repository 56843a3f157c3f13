"""The thread to the box: finds it again by itself and brings what was decided without it."""

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

from appliance.accidents import log_accident
from appliance.clock import format_instant
from appliance.model.guest_pass import resembles_pass
from appliance.model.verdict import COLOURS
from terminal_bridge.bridge.client import NotPaired, OutOfReach, Refused
from terminal_bridge.bridge.desk import Desk
from terminal_bridge.bridge.spool import Spooled

log = logging.getLogger(__name__)

RENEW_SECONDS = 60.0
_SETTLE_SECONDS = 0.5  # a crowd at another door is one change
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 10.0
_BATCH = 50


class Link:
    """Runs beside the desk for as long as the bridge runs."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        """`folder` is where the identity is saved when the box's keys change."""
        self._desk = desk
        self._folder = folder
        self._wake = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        desk.on_lost = self._wake.set

    async def run(self) -> None:
        """Until cancelled."""
        wait = _FIRST_WAIT
        try:
            while True:
                self._wake.clear()
                if await self._try():
                    wait = _FIRST_WAIT
                    await self._rest()
                else:
                    await asyncio.sleep(wait)
                    wait = min(wait * 2, _LONGEST_WAIT)
        finally:
            if self._listening is not None:
                self._listening.cancel()
                await asyncio.gather(self._listening, return_exceptions=True)

    async def _try(self) -> bool:
        """Whether the box was reached and everything is with it."""
        try:
            return await self._reach_or_revoke()
        except OutOfReach as why:
            self._desk.lose(str(why))
        except Exception as error:  # noqa: BLE001 - the door goes on without the box
            self._desk.lose("something unexpected happened")
            log_accident("the link to the box", error)
        return False

    async def _reach_or_revoke(self) -> bool:
        """False when the box does not know this bridge any more."""
        try:
            await self._reach()
        except NotPaired:
            await self._desk.revoke()
            return False
        return True

    async def _rest(self) -> None:
        """Until it is time to renew the snapshot, or the box is lost, or something changed."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._desk.client.listen(self._wake.set))
        with suppress(TimeoutError):
            async with asyncio.timeout(RENEW_SECONDS):
                await self._wake.wait()
        await asyncio.sleep(_SETTLE_SECONDS)

    async def _reach(self) -> None:
        desk = self._desk
        me = await desk.client.me()
        desk.set_clock(me["boxTime"])
        identity = desk.client.identity.introduced(me)
        if identity != desk.client.identity:
            identity.save(self._folder)
            desk.client.identity = identity
        await self._sync()
        await desk.renew_snapshot()
        while not await desk.find():  # scans were decided here while the others were brought
            await self._sync()

    async def _sync(self) -> None:
        """Bring what was decided here, oldest first, until nothing is left."""
        while batch := await self._desk.spool.list_open(_BATCH):
            try:
                await self._bring(batch)
            except Refused:
                await self._bring_singly(batch)

    async def _bring(self, batch: list[Spooled]) -> None:
        desk = self._desk
        sent_at = format_instant(desk.now())
        results = await desk.client.sync([_to_wire(scan) for scan in batch], sent_at)
        answered = {result["scanId"]: result for result in results}
        settled = [
            (scan.scan_id, _remark(scan, answered[scan.scan_id]))
            for scan in batch
            if scan.scan_id in answered
        ]
        if not settled:
            raise OutOfReach("the box answered none of the scans that were brought")
        await desk.spool.settle(settled)

    async def _bring_singly(self, batch: list[Spooled]) -> None:
        """One that the box refuses does not keep the others back; it stays here with its reason."""
        for scan in batch:
            try:
                await self._bring([scan])
            except Refused as refusal:
                log.warning("the box refused a scan: %s", refusal)
                await self._desk.spool.settle([(scan.scan_id, f"refused: {refusal}")])


def _to_wire(scan: Spooled) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "scanId": scan.scan_id,
        "code": scan.code,
        "at": format_instant(scan.at),
        "shown": scan.result,
    }
    if scan.admitted > 0:
        wire["arrivals"] = scan.admitted
    # A pass speaks for itself; the box may read a typed code otherwise than it was read here.
    if scan.reservation_id is not None and not resembles_pass(scan.code):
        wire["reservationId"] = scan.reservation_id
    return wire


def _remark(scan: Spooled, result: dict[str, Any]) -> str | None:
    """What somebody should know: a party is in of which the box thinks otherwise."""
    remark = None
    if result.get("conflict"):
        remark = "conflict"
    elif COLOURS.get(scan.result) == "green" and result["colour"] != "green":
        remark = f"the box had decided {result['result']}, too late to be shown"
    if remark:
        log.warning("a party that was let in here without the box: %s", remark)
    return remark
