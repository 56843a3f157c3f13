"""The live feed: sends the changes from each commit to terminals and the portal's pages.

The feed keeps the ids of changed rows, and reads the rows only while it has listeners. A listener
that reconnects with its last position gets the later changes, with the current rows.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from appliance.core.errors import Unavailable, log_exception
from appliance.database.connection import Reader
from appliance.database.database import ChangedBeside, Database
from appliance.door.check_in import DoorChanged
from appliance.door.offline_sync import Conflict, find_conflict
from appliance.outbox import (
    ConflictChanged,
    ReservationChanged,
    SessionEnded,
    SigningKeyChanged,
    TerminalEdited,
    TerminalGone,
)
from appliance.reservations.model import Reservation, late_from
from appliance.reservations.rows import Totals, count_evening, find_reservations
from appliance.venue.model import find_tonight

_DIGITS_MAX = 18
QUEUE_LIMIT = 256  # maximum number of changes queued for a slow listener
REMEMBERED = 1000  # number of changes kept for listeners that reconnect
_BATCH_SECONDS = 0.1  # pause between batches; changes during the pause are read together


@dataclass(frozen=True, slots=True)
class Change:
    """A message in the feed. `kind` is check-in, change, conflict, totals, reset or revoked.

    A listener that reconnects with `position` gets the later changes. `evening` is tonight's date
    and `totals` are tonight's totals. `reservation` is the current row. `door` is the check-in or
    undo that caused the change, if any. `late_from` is that function's result for `reservation`.
    """

    position: str
    kind: str
    evening: str = ""
    reservation: Reservation | None = None
    door: DoorChanged | None = None
    conflict: Conflict | None = None
    totals: Totals | None = None
    late_from: int | None = None

    @property
    def number(self) -> int:
        """The number in `position`. It is 0 when the box starts, and each change increases it."""
        return int(self.position.partition("-")[2])


class Listener:
    """The queue of changes for one listener. `Feed.listen` creates it."""

    def __init__(self, owner: str, wants: Callable[[Change], bool]) -> None:
        self.owner = owner
        self.position = ""
        self.joined_at = 0
        self.over = asyncio.get_running_loop().create_future()
        self._wants = wants
        self._waiting: deque[Change] = deque()
        self._arrived = asyncio.Event()

    async def take(self, seconds: float) -> list[Change]:
        """Return and remove all queued changes.

        If there are none, wait up to `seconds` for a change. The list is empty if no change arrived
        in time or the listener has ended.
        """
        if not self._waiting and not self.over.done():
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
        self._arrived.clear()
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def queue(self, changes: Iterable[Change]) -> None:
        """Queue the changes that the listener wants.

        If the queue is full, replace its contents with a single `reset`.
        """
        if self.over.done():
            return
        for change in changes:
            self.position = change.position
            if not self._wants(change):
                continue
            resets = bool(self._waiting) and self._waiting[-1].kind == "reset"
            if len(self._waiting) >= QUEUE_LIMIT:
                self._waiting.clear()
                self._waiting.append(Change(change.position, "reset"))
            # After a reset the listener reloads everything, so it needs no further changes.
            elif change.kind == "revoked" or not resets:
                self._waiting.append(change)
        if self._waiting:
            self._arrived.set()

    def end(self) -> None:
        """End the listener. It can still take the queued changes."""
        if not self.over.done():
            self.over.set_result(None)
        self._arrived.set()

    def drop(self) -> None:
        """End the listener and discard its queue.

        Call this when a terminal's role has changed, because the new role may not be allowed to see
        the queued changes.
        """
        self._waiting.clear()
        self.end()


@dataclass(frozen=True, slots=True)
class _Entry:
    number: int
    kind: str
    subject: str
    door: DoorChanged | None = None


class Feed:
    """The live feed for one environment. Use it only in the event loop that runs the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # All positions start with this random text, so a restart invalidates earlier positions.
        self._run = database.tokens.random_bytes(4).hex()
        self._last = 0
        self._sent = 0
        self._tonight: date | None = None
        self._remembered: deque[_Entry] = deque(maxlen=REMEMBERED)
        self._listeners: set[Listener] = set()
        self._lock = asyncio.Lock()
        self._sending: asyncio.Task[None] | None = None
        self._ended = False
        database.on_commit(self._on_commit)

    @property
    def position(self) -> str:
        """The position of the latest change."""
        return self._at(self._last)

    async def listen(
        self, owner: str, after: str | None, wants: Callable[[Change], bool]
    ) -> Listener:
        """Add a listener for the changes that `wants` accepts.

        The listener gets the current totals, then all further changes. A listener that passes its
        last position as `after` first gets the changes that it missed, or a `reset` if the feed no
        longer has them. Raises Unavailable if the box is stopping.
        """
        listener = Listener(owner, wants)
        async with self._lock:  # no batch is sent while the lock is held, so changes stay in order
            if self._ended:
                raise Unavailable
            missed = self._since(after)
            listener.joined_at = self._last
            tonight, totals, changes = await self._database.read(self._describe, missed or [])
            begin = [] if missed is not None else [Change(self._at(listener.joined_at), "reset")]
            now = Change(
                self._at(listener.joined_at), "totals", evening=tonight.isoformat(), totals=totals
            )
            listener.queue([*begin, *changes, now])
            if not self._listeners:
                self._tonight, self._sent = tonight, listener.joined_at
            if self._ended:
                raise Unavailable
            self._listeners.add(listener)
        self._send_soon()
        return listener

    def leave(self, listener: Listener) -> None:
        """Remove a listener."""
        self._listeners.discard(listener)

    def close(self) -> None:
        """End all listeners and accept no new listeners."""
        self._ended = True
        if self._sending is not None:
            self._sending.cancel()
        for listener in self._listeners:
            listener.end()

    def _at(self, number: int) -> str:
        return f"{self._run}-{number}"

    def _since(self, after: str | None) -> list[_Entry] | None:
        """Return the entries after a position, or None if the position is unknown or too old."""
        if after is None:
            return []
        run, _, number = after.partition("-")
        if run != self._run or not number.isdecimal() or len(number) > _DIGITS_MAX:
            return None
        missed, stored = self._last - int(number), len(self._remembered)
        if not 0 <= missed <= stored:
            return None
        return list(self._remembered)[stored - missed :]

    def _on_commit(self, notices: Sequence[object]) -> None:
        arrivals = {n.verdict.reservation.id for n in notices
                    if isinstance(n, DoorChanged) and n.verdict.reservation}  # fmt: skip
        for notice in notices:
            match notice:
                case ReservationChanged(reservation_id, moved=False) if (
                    reservation_id not in arrivals
                ):
                    self._remember("change", reservation_id)
                case DoorChanged(verdict=verdict):
                    seen, is_undo = verdict.reservation, verdict.result == "undone"
                    kind = ("change" if is_undo else "check-in") if seen else "totals"
                    self._remember(kind, seen.id if seen else "", door=notice if seen else None)
                case ConflictChanged(conflict_id):
                    self._remember("conflict", conflict_id)
                case ChangedBeside() | SigningKeyChanged() | ReservationChanged(moved=True):
                    self._last += 1
                    # Anything may have changed, so all listeners must reload.
                    self._remembered.clear()
                case TerminalGone(terminal_id):
                    self._revoke_listeners(terminal_id)
                case SessionEnded(session_id):
                    self._revoke_listeners(f"staff:{session_id}")
                case TerminalEdited(terminal_id):  # the terminal must reconnect to get its new role
                    for listener in self._owned_by(terminal_id):
                        listener.drop()
        self._send_soon()

    def _revoke_listeners(self, owner: str) -> None:
        """Send `revoked` to all listeners that belong to `owner`, then end them."""
        for listener in self._owned_by(owner):
            listener.queue([Change(self.position, "revoked")])
            listener.end()

    def _owned_by(self, owner: str) -> list[Listener]:
        return [listener for listener in self._listeners if listener.owner == owner]

    def _remember(self, kind: str, subject: str, door: DoorChanged | None = None) -> None:
        self._last += 1
        self._remembered.append(_Entry(self._last, kind, subject, door))

    def _send_soon(self) -> None:
        is_sending = self._sending is not None and not self._sending.done()
        if self._listeners and self._sent < self._last and not is_sending:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        """Send new changes to all listeners until there are no more."""
        while self._listeners and self._sent < self._last:
            async with self._lock:
                await self._send_batch()
            await asyncio.sleep(_BATCH_SECONDS)

    async def _send_batch(self) -> None:
        entries = self._since(self._at(self._sent))
        self._sent = self._last
        reset = [Change(self.position, "reset")]
        try:
            tonight, _, changes = await self._database.read(self._describe, entries or [])
        except Exception as error:  # noqa: BLE001 - the listeners get a reset
            if not isinstance(error, Unavailable):
                log_exception("live feed: read changes", error)
            self._send_all(reset)
            return
        is_over, self._tonight = tonight != self._tonight, tonight
        self._send_all(reset if entries is None or is_over else changes)

    def _send_all(self, changes: list[Change]) -> None:
        for listener in self._listeners:
            listener.queue(change for change in changes if change.number > listener.joined_at)

    def _describe(
        self, reader: Reader, entries: Sequence[_Entry]
    ) -> tuple[date, Totals, list[Change]]:
        """Return tonight's date, tonight's totals and the changes for `entries`.

        If a reservation has several entries of the kind `change`, only the last is returned.
        """
        latest = {entry.subject: entry.number for entry in entries if entry.kind == "change"}
        kept = [e for e in entries if e.kind != "change" or latest[e.subject] == e.number]
        conflicts = {
            e.subject: find_conflict(reader, e.subject) for e in kept if e.kind == "conflict"
        }
        reservation_ids = {
            e.number: c.reservation_id if (c := conflicts.get(e.subject)) else e.subject
            for e in kept
        }
        reservations = find_reservations(reader, set(filter(None, reservation_ids.values())))
        tonight = find_tonight(reader)
        totals = count_evening(reader, tonight.isoformat())

        def describe(entry: _Entry) -> Change:
            found = reservations.get(reservation_ids[entry.number] or "")
            return Change(
                self._at(entry.number), entry.kind, tonight.isoformat(), found, entry.door,
                conflicts.get(entry.subject), totals, late_from(reader, found) if found else None,
            )  # fmt: skip

        return tonight, totals, [describe(entry) for entry in kept]
