"""The recorder: writes the outcomes of attempts in batches, one transaction at a time."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from appliance.core.errors import Unavailable, log_exception
from appliance.database.connection import Transaction
from appliance.database.database import Database
from appliance.webhooks.deliveries import (
    AttemptRecord,
    drop_requests,
    insert_attempts,
    keep_failed_requests,
    list_erased,
    update_deliveries,
    update_health,
)


def record_attempts(tx: Transaction, records: Sequence[AttemptRecord]) -> None:
    """Record each attempt, and update its delivery and its endpoint's health.

    If a guest's data was erased while an attempt was in flight, the contents of the request and the
    response are not stored.
    """
    erased = list_erased(tx, [record.delivery_seq for record in records])
    records = [r.without_content() if r.delivery_seq in erased else r for r in records]
    insert_attempts(tx, records)
    update_deliveries(tx, records)
    keep_failed_requests(tx, [record for record in records if record.request is not None])
    drop_requests(tx, [(r.delivery_seq,) for r in records if r.state == "delivered"])
    update_health(tx, records)


log = logging.getLogger(__name__)
BATCH_MAX = 64
_GATHER_SECONDS = 0.05
_AGAIN_SECONDS = 1.0


class Recorder:
    """Collects outcomes for 50 ms, then writes them in one transaction.

    If writing them raises Unavailable, the outcomes stay in memory, and the recorder tries again
    every second. If it raises any other error, they are discarded.
    """

    def __init__(
        self,
        database: Database,
        on_recorded: Callable[[Sequence[AttemptRecord]], None],
        on_stuck: Callable[[bool], None],
    ) -> None:
        """`on_recorded` is called after each commit.

        `on_stuck` is called with True when outcomes cannot be written, and with False when they can
        be written again.
        """
        self._database = database
        self._on_recorded = on_recorded
        self._on_stuck = on_stuck
        self._waiting: list[AttemptRecord] = []
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @property
    def waiting(self) -> int:
        """The number of outcomes not yet written."""
        return len(self._waiting)

    def add(self, record: AttemptRecord) -> None:
        """Queue an outcome to be written."""
        self._waiting.append(record)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="webhook recorder")

    async def close(self) -> None:
        """Try once to write the waiting outcomes.

        Deliveries whose outcome cannot be written are sent again after the next start.
        """
        self._closing.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        stuck = False
        while self._waiting:
            if len(self._waiting) < BATCH_MAX:
                await self._pause(_GATHER_SECONDS)
            batch = self._waiting[:BATCH_MAX]
            try:
                await self._database.write(record_attempts, batch)
            except Unavailable:
                if self._closing.is_set():
                    break
                if not stuck:
                    log.warning("webhooks: outcomes cannot be written, so sending is paused")
                    stuck = True
                    self._on_stuck(stuck)
                await self._pause(_AGAIN_SECONDS)
                continue
            except Exception as error:  # noqa: BLE001 - the deliveries are sent again after a restart
                log_exception(f"webhooks: write {len(batch)} outcomes", error)
                await self._pause(_AGAIN_SECONDS)
            del self._waiting[: len(batch)]
            self._on_recorded(batch)
        self._task = None
        if stuck:
            self._on_stuck(not stuck)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()
