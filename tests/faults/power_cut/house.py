"""A house whose power fails: the real writer and the real actions on a forgetful disk."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import count
from typing import Any

import apsw

from appliance.actions.cancel import cancel_own
from appliance.actions.check_in import check_in
from appliance.actions.issue_key import issue_key
from appliance.actions.reserve import reserve
from appliance.clock import StoppedClock, newest_zone_database
from appliance.errors import Refusal
from appliance.model.api_key import ApiKey
from appliance.model.scan import Reading, Scan
from appliance.model.terminal import Terminal
from appliance.store.connection import Batch, configure
from appliance.store.watermark import Watermark, count_missing_frames
from appliance.store.writer import Writer
from appliance.tokens import Tokens
from tests.builders import TONIGHT, a_booking, table_id
from tests.faults.power_cut.beside import Beside
from tests.faults.power_cut.disk import Disk
from tests.faults.power_cut.vfs import NAME, ForgetfulVFS

TABLES = ("T1", "T2", "T3", "T4", "T5")
SLOTS = ("19:30", "22:00", None)


@dataclass
class Facts:
    """What somebody was told, and may rely on for ever."""

    granted: dict[str, str] = field(default_factory=dict)  # id: access code
    cancelled: set[str] = field(default_factory=set)
    entered: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.granted) + len(self.cancelled) + len(self.entered) + len(self.keys)


@dataclass
class House:
    """One venue through many cuts. `prepare` may weaken each connection, to prove the checks."""

    vfs: ForgetfulVFS
    files: dict[str, bytes]
    key: ApiKey
    terminal: Terminal
    draw: random.Random
    prepare: Callable[[apsw.Connection], None] = lambda _: None
    facts: Facts = field(default_factory=Facts)
    clock: StoppedClock = field(default_factory=lambda: StoppedClock("2026-11-21T19:00:00Z"))
    marks: list[bytes] = field(default_factory=list)  # each watermark that was ever written
    _numbers: count = field(default_factory=lambda: count(1))

    async def live_until_a_cut(self, cut_after: int) -> None:
        """Open, work, and lose the power after so many changes of the disk."""
        self.vfs.disk = disk = Disk(self.files, cut_after)
        connection = None
        try:
            connection = self.open()
        except apsw.IOError:
            assert disk.is_dead
        else:
            await self._work(connection, disk)
        finally:
            if connection is not None:
                with suppress(apsw.Error):
                    connection.close(force=True)
        self.files = disk.after_a_cut(self.draw)

    def open(self) -> apsw.Connection:
        """As the box does, alone on its file: the disk has no shared memory."""
        connection = apsw.Connection("live.db", flags=apsw.SQLITE_OPEN_READWRITE, vfs=NAME)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        configure(connection)
        connection.execute(f"PRAGMA wal_autocheckpoint = {self.draw.choice((5, 50, 1000))}")
        self.prepare(connection)
        return connection

    async def _work(self, connection: apsw.Connection, disk: Disk) -> None:
        zones, tokens = newest_zone_database(), Tokens(self.draw.randbytes)
        writer = Writer(
            connection,
            lambda: Batch(connection, self.clock, zones, tokens),
            on_commit=lambda _: None,
            on_broken=lambda _: None,
            on_durable=Watermark(connection, Beside(disk, self.marks)).rise,
        )
        try:
            while not disk.is_dead:
                self.clock.advance(1)
                await asyncio.gather(*(self._act(writer) for _ in range(self.draw.randint(1, 9))))
        finally:
            await writer.close()

    async def _act(self, writer: Writer) -> None:
        """Somebody wants something; what is answered becomes a fact."""
        chance = self.draw.random()
        known = [id_ for id_ in self.facts.granted if id_ not in self.facts.cancelled]
        with suppress(Refusal):
            if chance < 0.05:
                issued = await self._write(writer, issue_key, "live", "Partner")
                self.facts.keys.add(issued.id)
            elif chance < 0.25 and known:
                chosen = self.draw.choice(known)
                await self._write(writer, cancel_own, self.key, chosen)
                self.facts.cancelled.add(chosen)
            elif chance < 0.45 and known:
                await self._let_in(writer, self.draw.choice(known))
            else:
                await self._book(writer)

    async def _book(self, writer: Writer) -> None:
        day = date.fromisoformat(TONIGHT) + timedelta(days=self.draw.randrange(6))
        booking = a_booking(
            table_id=table_id(self.draw.choice(TABLES)),
            slot=self.draw.choice(SLOTS),
            date=day,
            idempotency_key=f"booking-{next(self._numbers)}",
            notify_customer=False,
        )
        granted = await self._write(writer, reserve, "live", self.key, booking)
        self.facts.granted[granted.issued.reservation_id] = granted.issued.access_code

    async def _let_in(self, writer: Writer, reservation_id: str) -> None:
        scan = Scan(f"scan-{next(self._numbers)}", Reading("list", (reservation_id,)))
        scan = replace(scan, reason="known to the house")
        decided = await self._write(writer, check_in, self.terminal, scan, 120)
        if decided.verdict.admitted:
            self.facts.entered.add(reservation_id)

    @staticmethod
    async def _write(writer: Writer, action: Callable[..., Any], *arguments: Any) -> Any:
        return await writer.submit(action, arguments, {})


def complaints(house: House) -> list[str]:
    """What the next start would find wrong. It looks at a copy: the house finds the ruins."""
    house.vfs.disk = Disk(house.files)
    connection = house.open()
    try:
        return [*_of_the_log(connection, house), *_of_the_file(connection),
                *_of_facts(connection, house.facts), *_of_events(connection),
                *_of_tables(connection)]  # fmt: skip
    finally:
        connection.close()


def _of_the_log(connection: apsw.Connection, house: House):
    """A cut is no damage, whatever it left of the watermark: all of it, or any before, or none."""
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    earlier = house.draw.choice(house.marks or [b""])
    for mark in ((house.marks or [b""])[-1], earlier, b"", earlier[: house.draw.randrange(17)]):
        if count_missing_frames(connection, Beside(house.vfs.disk, [mark])):
            yield "F9: a box that lost nothing would not be served"


def _of_the_file(connection: apsw.Connection):
    found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    if found != ["ok"]:
        yield f"I7: integrity_check says {found[:3]}"
    if list(connection.execute("PRAGMA foreign_key_check")):
        yield "I7: foreign_key_check found orphans"


def _of_facts(connection: apsw.Connection, facts: Facts):
    rows = {
        id_: (code, status, arrived, at)
        for id_, code, status, arrived, at in connection.execute(
            "SELECT id, issued_code, status, arrived, checked_in_at FROM reservation"
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


def _of_events(connection: apsw.Connection):
    """I4: each change has its one event, and each event its delivery."""
    wanted = """
        SELECT id, 'reservation.created' FROM reservation UNION ALL
        SELECT id, 'reservation.cancelled' FROM reservation WHERE status = 'cancelled' UNION ALL
        SELECT id, 'reservation.checked_in' FROM reservation WHERE checked_in_at IS NOT NULL"""
    told = """SELECT e.reservation_id, e.type FROM event e JOIN delivery d ON d.event_seq = e.seq"""
    if sorted(connection.execute(wanted)) != sorted(connection.execute(told)):
        yield "I4: changes and events are not the same"


def _of_tables(connection: apsw.Connection):
    twice = connection.execute(
        """SELECT a.id, b.id FROM reservation a JOIN reservation b
               ON a.date = b.date AND a.table_id = b.table_id AND a.seq < b.seq
                   AND a.starts < b.ends AND b.starts < a.ends
           WHERE a.status <> 'cancelled' AND b.status <> 'cancelled'"""
    )
    for one, other in twice:
        yield f"I2: {one} and {other} hold one table"
