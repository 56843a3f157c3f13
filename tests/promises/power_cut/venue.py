"""A venue on the simulated disk: the real writer and actions, over many runs."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import count

import apsw

from appliance.api_keys import issue_key
from appliance.clock import newest_zone_database
from appliance.core.errors import ApiError
from appliance.core.tokens import Tokens
from appliance.database.connection import Transaction, configure
from appliance.database.integrity import empty_log
from appliance.database.writer import Writer
from appliance.door.check_in import check_in
from appliance.door.scan import Reading, Scan
from appliance.reservations.change import cancel_own
from appliance.reservations.create import reserve
from tests.builders import TONIGHT, a_booking, table_id
from tests.clocks import StoppedClock
from tests.promises.power_cut.vfs import NAME, Disk

TABLES = ("T1", "T2", "T3", "T4", "T5")
SLOTS = ("19:30", "22:00", None)
ROUNDS_AFTER_A_FAILURE = 3


@dataclass
class Facts:
    """Acknowledged facts, which must never be lost."""

    granted: dict = field(default_factory=dict)  # id: access code
    cancelled: set = field(default_factory=set)
    entered: set = field(default_factory=set)
    keys: set = field(default_factory=set)

    def __len__(self):
        return len(self.granted) + len(self.cancelled) + len(self.entered) + len(self.keys)


@dataclass
class VenueOnDisk:
    """A venue with repeated power cuts. `prepare` may weaken connections, to test the checks."""

    vfs: object
    files: dict
    key: object
    terminal: object
    draw: random.Random
    prepare: Callable = lambda _: None
    empties_log: bool = True  # errors at a start after a failed sync
    facts: Facts = field(default_factory=Facts)
    clock: StoppedClock = field(default_factory=lambda: StoppedClock("2026-11-21T19:00:00Z"))
    granted_after_failure: int = 0
    refused_starts: int = 0
    failures: int = 0  # disk failures after which the box exited
    _numbers: count = field(default_factory=lambda: count(1))

    async def live_until_a_cut(self, cut_after):
        """Open, work, and cut the power after a number of disk changes."""
        self.vfs.disk = disk = Disk(self.files, cut_after)
        connection = None
        try:
            connection = self.open(self.draw.choice((5, 50, 1000)))
            async with self._writer(connection) as writer:
                while not disk.is_dead:
                    await self._round(writer)
        except apsw.IOError:
            assert disk.is_dead
        finally:
            if connection is not None:
                with suppress(apsw.Error):
                    connection.close(force=True)
        self.files = disk.after_a_cut(self.draw)

    async def live_until_a_failure(self, disk, cut_after=None):
        """Start, and work until a sync fails, which ends the process.

        With `cut_after`, the power is cut after this number of changes that follow the start.
        """
        self.vfs.disk = disk
        connection = None
        try:
            connection = self._start()
            if cut_after is not None:
                disk.lose_power_after(cut_after)
            await self._serve(connection, disk)
        except apsw.Error:
            self.refused_starts += 1
        finally:
            if connection is not None:
                if self.draw.random() < 0.5:  # killed
                    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                with suppress(apsw.Error):
                    connection.close()

    def open(self, autocheckpoint=1000):
        """Open like the box, but with an exclusive lock: the disk has no shared memory."""
        connection = apsw.Connection("live.db", flags=apsw.SQLITE_OPEN_READWRITE, vfs=NAME)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        configure(connection)
        connection.execute(f"PRAGMA wal_autocheckpoint = {autocheckpoint}")
        self.prepare(connection)
        return connection

    def _start(self):
        connection = self.open(self.draw.choice((5, 50, 1000)))
        if self.empties_log:
            empty_log(connection)
        return connection

    async def _serve(self, connection, disk):
        broken = []
        async with self._writer(connection, broken.append) as writer:
            while not (broken or disk.is_dead):
                await self._round(writer)
            before = len(self.facts)
            for _ in range(ROUNDS_AFTER_A_FAILURE):
                await self._round(writer)
            self.granted_after_failure += len(self.facts) - before
            self.failures += bool(broken and disk.failed_syncs)

    def _writer(self, connection, on_broken=lambda _: None):
        zones, tokens = newest_zone_database(), Tokens(self.draw.randbytes)
        return Closing(Writer(
            connection,
            lambda: Transaction(connection, self.clock, zones, tokens),
            on_commit=lambda _: None,
            on_broken=on_broken,
        ))  # fmt: skip

    async def _round(self, writer):
        self.clock.advance(1)
        await asyncio.gather(*(self._act(writer) for _ in range(self.draw.randint(1, 9))))

    async def _act(self, writer):
        """Make a random request; record its answer as a fact."""
        chance = self.draw.random()
        known = [id_ for id_ in self.facts.granted if id_ not in self.facts.cancelled]
        with suppress(ApiError):
            if chance < 0.05:
                issued = await writer.submit(issue_key, ("live", "Partner"), {})
                self.facts.keys.add(issued.id)
            elif chance < 0.25 and known:
                chosen = self.draw.choice(known)
                await writer.submit(cancel_own, (self.key, chosen), {})
                self.facts.cancelled.add(chosen)
            elif chance < 0.45 and known:
                await self._check_in(writer, self.draw.choice(known))
            else:
                await self._book(writer)

    async def _book(self, writer):
        booking = a_booking(
            table_id=table_id(self.draw.choice(TABLES)),
            slot=self.draw.choice(SLOTS),
            date=date.fromisoformat(TONIGHT) + timedelta(days=self.draw.randrange(6)),
            idempotency_key=f"booking-{next(self._numbers)}",
            notify_customer=False,
        )
        granted = await writer.submit(reserve, ("live", self.key, booking), {})
        self.facts.granted[granted.issued.reservation_id] = granted.issued.access_code

    async def _check_in(self, writer, reservation_id):
        scan = Scan(f"scan-{next(self._numbers)}", Reading("list", (reservation_id,)))
        scan = replace(scan, reason="known to the house")
        decided = await writer.submit(check_in, (self.terminal, scan), {})
        if decided.verdict.admitted:
            self.facts.entered.add(reservation_id)


class Closing:
    """Close the writer at the end of the block."""

    def __init__(self, writer):
        self._writer = writer

    async def __aenter__(self):
        return self._writer

    async def __aexit__(self, *_):
        await self._writer.close()


def complaints(venue):
    """Return the broken promises. Reads a copy, so that the venue can continue."""
    venue.vfs.disk = Disk(venue.files)
    connection = venue.open()
    try:
        return [*_of_the_file(connection), *_of_facts(connection, venue.facts),
                *_of_events(connection), *_of_tables(connection)]  # fmt: skip
    except apsw.CorruptError as error:
        return [f"I7: the file cannot be read: {error}"]
    finally:
        connection.close()


def _of_the_file(connection):
    found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    if found != ["ok"]:
        yield f"I7: integrity_check says {found[:3]}"
    if list(connection.execute("PRAGMA foreign_key_check")):
        yield "I7: foreign_key_check found orphans"


def _of_facts(connection, facts):
    rows = {
        id_: (code, status, arrived, at)
        for id_, code, status, arrived, at in connection.execute(
            "SELECT id, issued_code, status, arrived, checked_in_at FROM reservation"
            " JOIN booking_request ON reservation_seq = seq"
        )
    }
    for id_, code in facts.granted.items():
        if rows.get(id_, (None,))[0] != code:
            yield f"I1: the booking {id_} was acknowledged and is lost"
        elif id_ in facts.cancelled and rows[id_][1] != "cancelled":
            yield f"I1: the cancellation of {id_} was acknowledged and is lost"
        elif id_ in facts.entered and not (rows[id_][2] and rows[id_][3]):
            yield f"I1: the check-in of {id_} was acknowledged and is lost"
    keys = {id_ for (id_,) in connection.execute("SELECT id FROM api_key")}
    if not facts.keys <= keys:
        yield "I1: a key was shown and is lost"


def _of_events(connection):
    """Check I4: each change has exactly one event, and each event has its delivery."""
    wanted = """
        SELECT id, 'reservation.created' FROM reservation UNION ALL
        SELECT id, 'reservation.cancelled' FROM reservation WHERE status = 'cancelled' UNION ALL
        SELECT id, 'reservation.checked_in' FROM reservation WHERE checked_in_at IS NOT NULL"""
    told = "SELECT e.reservation_id, e.type FROM event e JOIN delivery d ON d.event_seq = e.seq"
    if sorted(connection.execute(wanted)) != sorted(connection.execute(told)):
        yield "I4: changes and events are not the same"


def _of_tables(connection):
    twice = connection.execute(
        """SELECT a.id, b.id FROM reservation a JOIN reservation b
               ON a.date = b.date AND a.table_id = b.table_id AND a.seq < b.seq
                   AND a.starts < b.ends AND b.starts < a.ends
           WHERE a.status <> 'cancelled' AND b.status <> 'cancelled'"""
    )
    for one, other in twice:
        yield f"I2: {one} and {other} hold one table"
    wanted = """SELECT seq, date, table_id, starts, ends FROM reservation
                WHERE status <> 'cancelled' ORDER BY seq"""
    held = "SELECT reservation_seq, date, table_id, starts, ends FROM hold ORDER BY 1"
    if list(connection.execute(wanted)) != list(connection.execute(held)):
        yield "I2: the holds are not those of the reservations"
