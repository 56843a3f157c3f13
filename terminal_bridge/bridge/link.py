"""The thread to the box: finds it again by itself and brings what was decided without it."""

import asyncio
import logging
from pathlib import Path

from appliance.accidents import log_accident
from appliance.clock import format_instant
from terminal_bridge.bridge.client import NotPaired, OutOfReach, Refused
from terminal_bridge.bridge.desk import Desk
from terminal_bridge.bridge.spool import Spooled

log = logging.getLogger(__name__)

RENEW_SECONDS = 60.0
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 10.0
_BATCH = 50


class Link:
    """Runs beside the desk for as long as the bridge runs."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        """`folder` is where the identity is saved when the box's keys change."""
        self._desk = desk
        self._folder = folder
        self._lost = asyncio.Event()
        desk.on_lost = self._lost.set

    async def run(self) -> None:
        """Until cancelled."""
        wait = _FIRST_WAIT
        while True:
            self._lost.clear()
            try:
                await self._reach()
                wait = _FIRST_WAIT
                await self._sleep(RENEW_SECONDS)
                continue
            except OutOfReach as why:
                self._desk.lose(str(why))
            except NotPaired:
                await self._desk.revoke()
            except Exception as error:  # noqa: BLE001 - the door goes on without the box
                self._desk.lose("something unexpected happened")
                log_accident("the link to the box", error)
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def _sleep(self, seconds: float) -> None:
        """Until it is time to renew, or the box is lost."""
        try:
            async with asyncio.timeout(seconds):
                await self._lost.wait()
        except TimeoutError:
            pass

    async def _reach(self) -> None:
        desk = self._desk
        me = await desk.client.me()
        desk.set_clock(me["boxTime"])
        identity = desk.client.identity.introduced(me)
        if identity != desk.client.identity:
            identity.save(self._folder)
            desk.client.identity = identity
        await self._sync()
        while not await desk.find():  # scans were decided here while the others were brought
            await self._sync()
        await desk.renew_snapshot()

    async def _sync(self) -> None:
        """Bring what was decided here, oldest first, until nothing is left."""
        spool = self._desk.spool
        while batch := await spool.list_open(_BATCH):
            try:
                results = await self._desk.client.sync([_to_wire(scan) for scan in batch])
            except Refused:
                await self._sync_singly(batch)
                continue
            known = {scan.scan_id for scan in batch}
            settled = [
                (result["scanId"], _remark(result))
                for result in results
                if result["scanId"] in known
            ]
            if not settled:
                raise OutOfReach("the box answered none of the scans that were brought")
            await spool.settle(settled)

    async def _sync_singly(self, batch: list[Spooled]) -> None:
        """One that the box refuses does not keep the others back; it stays here with its reason."""
        for scan in batch:
            try:
                results = await self._desk.client.sync([_to_wire(scan)])
                remark = _remark(results[0]) if results else None
            except Refused as refusal:
                log.warning("the box refused a scan: %s", refusal)
                remark = f"refused: {refusal}"
            await self._desk.spool.settle([(scan.scan_id, remark)])


def _to_wire(scan: Spooled) -> dict[str, str]:
    return {
        "scanId": scan.scan_id,
        "code": scan.code,
        "at": format_instant(scan.at),
        "shown": scan.result,
    }


def _remark(result: dict[str, object]) -> str | None:
    if not result.get("conflict"):
        return None
    log.warning("conflict: another door let the same party in meanwhile; see the portal")
    return "conflict"
