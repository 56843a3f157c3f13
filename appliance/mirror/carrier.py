"""The job that fills the mirror, batch by batch. No other part of the box waits for it."""

import asyncio
import logging

from appliance.core.settings import MirrorSettings
from appliance.database.connection import Reader
from appliance.database.database import Database
from appliance.mirror import changes
from appliance.mirror.changes import State
from appliance.mirror.server import Session, Trouble, connected, server_name
from appliance.mirror.tables import shape
from appliance.scheduler import Job
from appliance.venue.model import get_venue

log = logging.getLogger(__name__)

_SIZE, _SMALLEST = 500, 8  # rows in a batch, and the minimum if batches do not arrive in time
_PACE_SECONDS = 1.0  # pause between batches, so that a batch contains the changes of many bookings
_IDLE_SECONDS = 10.0  # an idle connection is closed, because other boxes need one
_FIRST_RETRY, _LONGEST_RETRY = 2.0, 60.0  # in seconds
_TOLD_ROWS = 50_000


class Carrier:
    """Copies the changes of the live environment to the mirror."""

    def __init__(self, database: Database, settings: MirrorSettings) -> None:
        self._database = database
        self._settings = settings
        self._size = _SIZE
        self._retry = _FIRST_RETRY
        self._rests_until = 0  # ms since 1970
        self._has_looked = False  # whether the server was checked since the start
        self._trouble: str | None = None  # None: unknown
        self._woken = asyncio.Event()
        database.on_commit(lambda _: self._woken.set())
        self.job = Job("mirror", database, self._next_due, self.run)

    def _next_due(self, reader: Reader) -> int | None:
        if reader.value("SELECT id FROM venue") is None:  # the box is still being set up
            return None
        has_work = not self._has_looked or changes.has_work(reader)
        return self._rests_until if has_work else None

    async def run(self) -> None:
        """Copy waiting changes until nothing has changed for a while or an error occurs."""
        try:
            async with connected(self._settings.url) as session:
                await self._carry(session)
        except Trouble as trouble:
            self._size = max(self._size // 4, _SMALLEST)
            self._rest(self._retry)
            self._retry = min(self._retry * 2, _LONGEST_RETRY)
            if trouble.name != self._trouble:
                where = server_name(self._settings.url)
                log.warning("mirror: could not fill %s, will try again: %s", where, trouble)
            await self._note(trouble.name)
        else:
            self._rest(_PACE_SECONDS)

    def _rest(self, seconds: float) -> None:
        self._rests_until = self._database.clock.now() + round(seconds * 1000)

    async def _carry(self, session: Session) -> None:
        await session.prepare()
        state = await self._agree(session)
        self._has_looked = True
        while True:
            self._woken.clear()
            contacts = self._settings.contacts
            read = self._database.read
            batch = await read(changes.find_batch, self._size, contacts=contacts)
            if batch is None:
                await self._note("")
                try:
                    await asyncio.wait_for(self._woken.wait(), _IDLE_SECONDS)
                except TimeoutError:
                    return
                await asyncio.sleep(_PACE_SECONDS)
                continue
            await session.carry(batch)
            await self._database.write(changes.advance, batch)
            await self._note("")
            self._retry = _FIRST_RETRY
            self._size = min(self._size * 2, _SIZE)
            self._tell(state, batch)
            state = State(batch.token, batch.position, "", None, None)
            if not batch.is_full:
                await asyncio.sleep(_PACE_SECONDS)

    async def _agree(self, session: Session) -> State:
        """Return the state from which both sides continue. If they differ, copy everything."""
        read, write = self._database.read, self._database.write
        venue_id = (await read(get_venue)).id
        own = await read(changes.find_state)
        there = await session.find_state(venue_id)
        wanted = shape(contacts=self._settings.contacts)
        if own is not None and there is not None and there[0] == wanted:
            if there[1] == own.token:
                return own
            carried = await read(changes.find_carried, *there[1:])
            if carried is not None:
                await write(changes.advance, carried)
                return State(carried.token, carried.position, "", None, None)
        log.info("mirror: everything is copied to %s", server_name(self._settings.url))
        state = await write(changes.restart_copy)
        await session.begin_copy(venue_id, wanted, state.token, state.position)
        return state

    def _tell(self, before: State, batch: changes.Batch) -> None:
        copied, was = batch.position.copied, before.position.copied
        if before.position.copying and not batch.position.copying:
            log.info("mirror: everything was copied, %d rows", copied)
        elif copied // _TOLD_ROWS > was // _TOLD_ROWS:
            log.info("mirror: %d rows were copied so far", copied)

    async def _note(self, trouble: str) -> None:
        if trouble != self._trouble:
            await self._database.write(changes.set_trouble, trouble)
            self._trouble = trouble


async def start_mirror(database: Database, settings: MirrorSettings) -> list[Job]:
    """Start or stop recording changes, as configured. Return the mirror's job, if there is one."""
    if settings.url:
        await database.write(changes.switch_on)
        return [Carrier(database, settings).job]
    if database.peek(changes.find_state) is not None:
        await database.write(changes.switch_off)
    return []
