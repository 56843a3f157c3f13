"""Record what attempts came to: many in one transaction, one transaction at a time."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from appliance.alerts import (
    ENDPOINT_BLOCKED,
    ENDPOINT_FAILING,
    RECEIVER_CLOCK,
    SKEW_WARNING_S,
    Alerts,
    notice_blocked,
)
from appliance.clock import ClockMark
from appliance.clock_records import put_clock_mark
from appliance.core.errors import Unavailable, log_exception
from appliance.database.connection import Transaction
from appliance.database.database import Database
from appliance.webhooks.deliveries import (
    AttemptRecord,
    drop_failed_requests,
    insert_attempts,
    keep_failed_requests,
    list_forgotten,
    move_deliveries,
)
from appliance.webhooks.endpoints import record_health


def record_attempts(
    tx: Transaction, boot: str, records: Sequence[AttemptRecord], mark: ClockMark | None = None
) -> None:
    """Log each attempt, move its delivery, and note how its endpoint is doing.

    `mark` is written along, when it is time to. Of a guest who was erased while an attempt was
    under way nothing is quoted.
    """
    forgotten = list_forgotten(tx, [record.delivery_seq for record in records])
    records = [r.unquoted() if r.delivery_seq in forgotten else r for r in records]
    insert_attempts(tx, records)
    move_deliveries(tx, boot, records)
    keep_failed_requests(tx, [record for record in records if record.request is not None])
    drop_failed_requests(tx, [r.delivery_seq for r in records if r.retried and r.request is None])
    for endpoint_id in dict.fromkeys(record.endpoint_id for record in records):
        _record_health(tx, endpoint_id, [r for r in records if r.endpoint_id == endpoint_id])
    if mark is not None:
        put_clock_mark(tx, mark)


def _record_health(tx: Transaction, endpoint_id: str, records: list[AttemptRecord]) -> None:
    """What was our own fault says nothing about an endpoint."""
    outcomes = [r.outcome for r in records if r.outcome is not None and r.outcome.charged]
    if not outcomes:
        return
    failures, recovered = 0, False
    for outcome in outcomes:
        if outcome.delivered:
            failures, recovered = 0, True
        else:
            failures += 1
    skews = [skew for record in records if (skew := record.clock_skew_s) is not None]
    record_health(
        tx,
        endpoint_id,
        failures=failures,
        recovered=recovered,
        last_outcome=outcomes[-1].code,
        clock_skew_s=skews[-1] if skews else None,
    )


log = logging.getLogger(__name__)
BATCH_MAX = 64
_GATHER_SECONDS = 0.05
_AGAIN_SECONDS = 1.0


class Recorder:
    """Gathers outcomes for 50 ms, then writes them along with whatever else is committed.

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
                log_exception(f"writing the outcomes of {len(batch)} webhooks", error)
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


def note_health(conditions: Alerts, record: AttemptRecord) -> None:
    """Compare an outcome with what was known. What was our own fault says nothing."""
    outcome, id_, skew_s = record.outcome, record.endpoint_id, record.clock_skew_s
    if outcome is None or not outcome.charged:
        return
    if outcome.delivered:
        conditions.end(ENDPOINT_FAILING, f"webhook endpoint {id_} answers again", id_)
    else:
        conditions.begin(ENDPOINT_FAILING, f"webhook endpoint {id_} fails: {outcome.code}", id_)
    if outcome.code == "blocked":
        notice_blocked(conditions, id_, "its address may not be reached from this box")
    else:
        conditions.end(ENDPOINT_BLOCKED, f"webhook endpoint {id_} is no longer blocked", id_)
    clock = f"the clock of webhook endpoint {id_}"
    if skew_s is not None and abs(skew_s) > SKEW_WARNING_S:  # at 300 s it refuses each signature
        conditions.begin(RECEIVER_CLOCK, f"{clock} differs from ours by {skew_s} s", id_)
    elif skew_s is not None:
        conditions.end(RECEIVER_CLOCK, f"{clock} agrees with ours", id_)
