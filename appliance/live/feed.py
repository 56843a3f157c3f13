"""The live feed: what each commit changed, told to whoever listens, and to nobody else.

Fed by the notices of commits. It keeps the numbers of what changed and reads the rows only
when somebody listens, so that a booking costs nothing more; who comes back with the number it
heard last hears the rest as it is now.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice

from appliance.accidents import log_accident
from appliance.errors import Unavailable
from appliance.live.change import Change
from appliance.live.listener import Listener
from appliance.live.tally import Tally
from appliance.model.notices import (
    ConflictChanged,
    DoorChanged,
    ReservationChanged,
    SessionEnded,
    SigningKeyChanged,
    TerminalEdited,
    TerminalGone,
)
from appliance.store.conflicts import find_conflict
from appliance.store.connection import Reader
from appliance.store.database import ChangedBeside, Database
from appliance.store.readings import find_tonight
from appliance.store.reservations import find_reservations

_DIGITS_MAX = 18
REMEMBERED = 1000  # changes that somebody may have missed and still hears of
_BREATH = 0.1  # seconds: changes that follow each other closely are read together


@dataclass(frozen=True, slots=True)
class _Entry:
    number: int
    kind: str
    subject: str
    moved: bool = False
    door: DoorChanged | None = None

    @property
    def is_conflict(self) -> bool:
        return self.kind == "conflict"


@dataclass(frozen=True, slots=True)
class _Told:
    tonight: date
    tally: Tally
    changes: list[Change]


class Feed:
    """The feed of one environment. Belongs to the event loop of its database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Positions of another run of the box mean nothing to this one.
        self._run = database.tokens.random_bytes(4).hex()
        self._last = 0
        self._told = 0
        self._tonight: date | None = None
        self._tally: Tally | None = None
        self._counted = 0  # up to where the tally has counted
        self._remembered: deque[_Entry] = deque(maxlen=REMEMBERED)
        self._listeners: set[Listener] = set()
        self._turn = asyncio.Lock()
        self._telling: asyncio.Task[None] | None = None
        self._ended = False
        database.on_commit(self._on_commit)

    @property
    def position(self) -> str:
        """Where the feed stands."""
        return self._at(self._last)

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    async def listen(
        self, owner: str, after: str | None, wants: Callable[[Change], bool]
    ) -> Listener:
        """Somebody begins to hear of changes to reservations that it `wants`, and of the rest.

        It hears the totals first; with `after`, the position it heard last, what it missed
        before them, or a `reset` when that is no longer known. Unavailable when the box stops.
        """
        listener = Listener(owner, wants)
        async with self._turn:  # so that nothing is told to it out of its order
            self._refuse_if_ended()
            missed = self._since(after)
            listener.joined_at = self._last
            told = await self._read(missed or [])
            begin = [] if missed is not None else [Change(self._at(listener.joined_at), "reset")]
            now = Change(
                self._at(listener.joined_at),
                "totals",
                evening=told.tonight.isoformat(),
                totals=told.tally.totals,
            )
            listener.tell([*begin, *told.changes, now])
            if self._tonight is None or not self._listeners:
                self._tonight = told.tonight
            if not self._listeners:
                self._told = listener.joined_at
            self._refuse_if_ended()
            self._listeners.add(listener)
        self._tell_soon()
        return listener

    def leave(self, listener: Listener) -> None:
        """It listens no longer."""
        self._listeners.discard(listener)

    def close(self) -> None:
        """Let everybody leave: the box stops."""
        self._ended = True
        if self._telling is not None:
            self._telling.cancel()
        for listener in self._listeners:
            listener.end()

    def _refuse_if_ended(self) -> None:
        if self._ended:
            raise Unavailable

    def _at(self, number: int) -> str:
        return f"{self._run}-{number}"

    def _since(self, after: str | None) -> list[_Entry] | None:
        """What followed that position; None when it is not known any more."""
        if after is None:
            return []
        run, _, number = after.partition("-")
        is_number = number.isdecimal() and len(number) <= _DIGITS_MAX
        if run != self._run or not is_number or int(number) > self._last:
            return None
        if self._last - int(number) > len(self._remembered):
            return None
        missed = self._last - int(number)
        return list(islice(self._remembered, len(self._remembered) - missed, None))

    def _on_commit(self, notices: Sequence[object]) -> None:
        arrivals = {n.verdict.reservation.id for n in notices
                    if isinstance(n, DoorChanged) and n.verdict.reservation}  # fmt: skip
        for notice in notices:
            if isinstance(notice, ReservationChanged):
                if notice.reservation_id not in arrivals:
                    self._remember("change", notice.reservation_id, moved=notice.moved)
            elif isinstance(notice, DoorChanged):
                if notice.verdict.reservation is not None:
                    kind = "check-in" if notice.verdict.admitted > 0 else "change"
                    self._remember(kind, notice.verdict.reservation.id, door=notice)
            elif isinstance(notice, ConflictChanged):
                self._remember("conflict", notice.conflict_id)
            elif isinstance(notice, ChangedBeside | SigningKeyChanged):
                self._last += 1
                self._remembered.clear()  # no row says what it was: all have to look again
            else:
                self._part(notice)
        self._tell_soon()

    def _part(self, notice: object) -> None:
        """End what those hear whom the notice is about, if it is about who listens."""
        if isinstance(notice, TerminalGone):
            self.dismiss(notice.terminal_id)
        elif isinstance(notice, TerminalEdited):
            self._send_back(notice.terminal_id)
        elif isinstance(notice, SessionEnded):
            self.dismiss(f"staff:{notice.session_id}")

    def dismiss(self, owner: str) -> None:
        """Whoever listens under that name is told that it was revoked, and leaves."""
        for listener in [found for found in self._listeners if found.owner == owner]:
            listener.tell([Change(self.position, "revoked")])
            listener.end()

    def _send_back(self, owner: str) -> None:
        """Whoever listens under that name leaves at once, to come back for the rest."""
        for listener in [found for found in self._listeners if found.owner == owner]:
            listener.drop()

    def _remember(
        self, kind: str, subject: str, *, moved: bool = False, door: DoorChanged | None = None
    ) -> None:
        self._last += 1
        self._remembered.append(_Entry(self._last, kind, subject, moved, door))

    def _tell_soon(self) -> None:
        is_telling = self._telling is not None and not self._telling.done()
        if self._listeners and self._told < self._last and not is_telling:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        """Tell everybody what is new, until there is no more of it."""
        while self._listeners and self._told < self._last:
            async with self._turn:
                await self._tell_at_once()
            await asyncio.sleep(_BREATH)

    async def _tell_at_once(self) -> None:
        entries = self._since(self._at(self._told))
        self._told = self._last
        reset = [Change(self.position, "reset")]
        try:
            told = await self._read(entries or [])
        except Unavailable:
            self._tell_all(reset)
            return
        except Exception as error:  # noqa: BLE001 - who listens has to look again
            log_accident("reading what has changed", error)
            self._tell_all(reset)
            return
        is_over, self._tonight = told.tonight != self._tonight, told.tonight
        self._tell_all(reset if entries is None or is_over else told.changes)

    def _tell_all(self, changes: list[Change]) -> None:
        for listener in self._listeners:
            listener.tell(change for change in changes if change.number > listener.joined_at)

    async def _read(self, entries: Sequence[_Entry]) -> _Told:
        """Read the rows of these, and the totals."""
        uncounted, counted = self._since(self._at(self._counted)), self._last
        tally, self._tally = self._tally, None
        if uncounted is None:
            uncounted, tally = [], None
        told = await self._database.read(self._describe, entries, uncounted, tally)
        self._tally, self._counted = told.tally, counted
        return told

    def _describe(
        self,
        reader: Reader,
        entries: Sequence[_Entry],
        uncounted: Sequence[_Entry],
        tally: Tally | None,
    ) -> _Told:
        """On a reader's thread: the rows as they are now; of many changes to one, the last."""
        latest = {entry.subject: entry.number for entry in entries if entry.kind == "change"}
        told = [e for e in entries if e.kind != "change" or latest[e.subject] == e.number]
        conflicts = {e.subject: find_conflict(reader, e.subject) for e in told if e.is_conflict}
        subjects = {e.subject for e in (*told, *uncounted) if not e.is_conflict}
        subjects |= {f.reservation_id for f in conflicts.values() if f and f.reservation_id}
        reservations = find_reservations(reader, subjects)
        tonight = find_tonight(reader)
        if tally is None or tally.evening != tonight:
            tally = Tally(reader, tonight)
        for subject in {entry.subject for entry in uncounted if not entry.is_conflict}:
            tally.count_again(subject, reservations.get(subject))
        changes = []
        for entry in told:
            conflict = conflicts.get(entry.subject) if entry.is_conflict else None
            reservation_id = conflict.reservation_id if conflict else entry.subject
            changes.append(
                Change(
                    position=self._at(entry.number),
                    kind=entry.kind,
                    evening=tonight.isoformat(),
                    reservation=reservations.get(reservation_id or ""),
                    moved=entry.moved,
                    door=entry.door,
                    conflict=conflict,
                    totals=tally.totals,
                )
            )
        return _Told(tonight, tally, changes)
