"""Writing what came of attempts: many in one transaction, one transaction at a time."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from appliance.accidents import log_accident
from appliance.actions.record_attempts import record_attempts
from appliance.clock_trust import ClockMark
from appliance.errors import Unavailable
from appliance.model.delivery import AttemptRecord
from appliance.store.database import Database

log = logging.getLogger(__name__)
BATCH_MAX = 64
_GATHER_SECONDS = 0.01
_AGAIN_SECONDS = 1.0


class Recorder:
    """Gathers outcomes for 10 ms, then writes them along with whatever else is committed.

    An outcome that cannot be written stays in memory and is tried again each second;
    `on_stuck` hears of the beginning and the end of that.
    """

    def __init__(
        self,
        database: Database,
        boot: str,
        mark: Callable[[], ClockMark | None],
        on_recorded: Callable[[Sequence[AttemptRecord]], None],
        on_stuck: Callable[[bool], None],
    ) -> None:
        """`mark` gives what is to be written of the clock, when it is time to."""
        self._database = database
        self._boot = boot
        self._mark = mark
        self._on_recorded = on_recorded
        self._on_stuck = on_stuck
        self._waiting: list[AttemptRecord] = []
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._stopping = False

    @property
    def waiting(self) -> int:
        """How many outcomes are not written yet."""
        return len(self._waiting)

    def add(self, record: AttemptRecord) -> None:
        """Take an outcome; it is written soon."""
        self._waiting.append(record)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="webhook recorder")

    async def close(self) -> None:
        """Write what waits, once. What the store refuses is sent again after the next start."""
        self._stopping = True
        self._hurry.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        stuck = False
        while self._waiting:
            if len(self._waiting) < BATCH_MAX:
                await self._pause(_GATHER_SECONDS)
            batch = self._waiting[:BATCH_MAX]
            try:
                await self._database.write(record_attempts, self._boot, batch, self._mark())
            except Unavailable:
                if self._stopping:
                    break
                if not stuck:
                    log.warning("outcomes of webhooks cannot be written: sending pauses")
                    stuck = True
                    self._on_stuck(stuck)
                await self._pause(_AGAIN_SECONDS)
                continue
            except Exception as error:  # noqa: BLE001 - they are sent again after a restart
                log_accident(f"writing the outcomes of {len(batch)} webhooks", error)
                await self._pause(_AGAIN_SECONDS)
            del self._waiting[: len(batch)]
            self._on_recorded(batch)
        self._task = None
        if stuck:
            self._on_stuck(not stuck)

    async def _pause(self, seconds: float) -> None:
        if self._hurry.is_set():
            return
        try:
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        except TimeoutError:
            return
