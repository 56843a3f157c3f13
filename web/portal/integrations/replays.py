"""Replays of many deliveries that run while somebody looks on, a short transaction at a time."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aiohttp import web

from appliance.accidents import log_accident
from appliance.actions.replay_deliveries import Progress, Selection, replay_deliveries
from appliance.clock import Clock
from appliance.environment import Environment
from appliance.errors import InternalError, NotFound, Refusal

_KEPT = 50


@dataclass
class Replay:
    """One replay: `counted` deliveries fitted before it began. `refusal` is what stopped it."""

    id: str
    environment: str
    selection: Selection
    counted: int
    progress: Progress | None = None
    refusal: Refusal | None = None
    ended_at: float | None = None

    @property
    def runs(self) -> bool:
        """Whether it is still looking at deliveries."""
        return self.ended_at is None

    @property
    def replayed(self) -> int:
        """How many deliveries it has put in line so far."""
        return 0 if self.progress is None else self.progress.replayed

    @property
    def percent(self) -> int:
        """How much of the log it has looked at."""
        if self.progress is None or self.progress.last == 0:
            return 0 if self.runs else 100
        return min(100, self.progress.after * 100 // self.progress.last)


class Replays:
    """The replays of this process, the latest last. What one has done stays when it is stopped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[str, Replay] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, environment: Environment, selection: Selection, counted: int) -> Replay:
        """Begin; the same selection twice at once is one replay."""
        for running in self._known.values():
            if running.runs and (running.environment, running.selection) == (
                environment.name,
                selection,
            ):
                return running
        replay_id = environment.database.tokens.new_id(self._clock.now())
        replay = Replay(replay_id, environment.name, selection, counted)
        self._known[replay_id] = replay
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        task = asyncio.create_task(self._run(environment, replay), name="replay")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return replay

    def get(self, environment: Environment, replay_id: str) -> Replay:
        """The replay of that id, or NotFound: it may be of before the last start."""
        replay = self._known.get(replay_id)
        if replay is None or replay.environment != environment.name:
            raise NotFound
        return replay

    def is_watched(self, replay: Replay, seconds: float) -> bool:
        """Whether it runs, or ended less than `seconds` ago."""
        return replay.ended_at is None or self._clock.monotonic() - replay.ended_at < seconds

    async def close(self) -> None:
        """Stop; the deliveries that were not looked at stay as they are."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, environment: Environment, replay: Replay) -> None:
        try:
            while replay.progress is None or not replay.progress.done:
                replay.progress = await environment.database.write(
                    replay_deliveries, replay.selection, replay.progress
                )
        except Refusal as refusal:
            replay.refusal = refusal
        except Exception as error:  # noqa: BLE001 - whoever looks on is told that it stopped
            log_accident("replaying deliveries", error)
            replay.refusal = InternalError()
        finally:
            replay.ended_at = self._clock.monotonic()


class Integrations:
    """What this room remembers while the application runs."""

    def __init__(self, clock: Clock) -> None:
        self.replays = Replays(clock)

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """Stop what runs when the application does."""
        yield
        await self.replays.close()


INTEGRATIONS: web.AppKey[Integrations] = web.AppKey("integrations", Integrations)
