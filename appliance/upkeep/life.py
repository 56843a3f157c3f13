"""What keeps a serving box alive: the watchdog, the reserve for a full disk."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from appliance.actions.check_in import check_in
from appliance.actions.check_in_by_staff import check_in_by_staff, undo_by_staff
from appliance.actions.sync_scans import sync_scans
from appliance.actions.undo_check_in import undo_check_in
from appliance.box import Box
from appliance.data_directory import DataDirectory
from appliance.upkeep.ballast import Ballast
from appliance.upkeep.watchdog import Watchdog, sd_notify

log = logging.getLogger(__name__)

DUMP = "stuck.txt"
_LOOK_SECONDS = 1.0  # while the disk is full

# What a full disk does not stop.
DOOR: frozenset[Callable[..., Any]] = frozenset(
    {check_in, check_in_by_staff, undo_by_staff, undo_check_in, sync_scans}
)


class Reserve:
    """Gives the ballast away when the disk is full, and makes it anew when it is not."""

    def __init__(self, box: Box, ballast: Ballast) -> None:
        self._box = box
        self._ballast = ballast
        self._alarm: asyncio.TimerHandle | None = None
        self._making: asyncio.Future[bool] | None = None

    def start(self) -> None:
        """Make the ballast beside the first requests, unless the start itself has used it."""
        for environment in self._box.environments:
            environment.database.go_first(DOOR, self._make_room)
        if self._ballast.was_released:
            self._refuse_all_but_the_door()
        else:
            loop = asyncio.get_running_loop()
            self._making = loop.run_in_executor(None, self._ballast.make)

    async def close(self) -> None:
        """Leave the ballast where it is."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._making is not None:
            await self._making

    def _make_room(self) -> bool:
        if not self._ballast.release():
            return False
        self._refuse_all_but_the_door()
        return True

    def _refuse_all_but_the_door(self) -> None:
        for environment in self._box.environments:
            environment.database.set_full(full=True)
        self._look_later()

    def _look_later(self) -> None:
        self._alarm = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        try:
            has_room = self._ballast.has_room_for_all()
            if has_room:
                self._ballast.make()
        except OSError:  # a volume that cannot be asked, or written to, for a while
            has_room = False
        if not has_room:
            self._look_later()
            return
        log.warning("there is room on the disk again: everything is taken")
        for environment in self._box.environments:
            environment.database.set_full(full=False)


@asynccontextmanager
async def living(
    box: Box, directory: DataDirectory, environ: Mapping[str, str], ballast: Ballast
) -> AsyncIterator[Watchdog]:
    """Entered when the box is ready to serve, left before it stops."""
    watchdog = Watchdog(directory.root / "log" / DUMP, environ)
    reserve = Reserve(box, ballast)
    reserve.start()
    watchdog.start()
    try:
        yield watchdog
    finally:
        sd_notify(environ, "STOPPING=1")
        watchdog.close()
        await reserve.close()
