"""A disk whose syncs fail, once or for good, and a house that goes on after it (F5).

What a failed sync did not write is lost, torn or kept, and is never written again by a later sync
that succeeds; but whoever reads it meanwhile still sees it, as the kernel's page cache shows it.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import apsw

from appliance.clock import newest_zone_database
from appliance.store.connection import Batch, configure
from appliance.store.log_again import write_log_again
from appliance.store.watermark import Watermark
from appliance.store.writer import Writer
from appliance.tokens import Tokens
from tests.faults.power_cut.beside import LOG, Beside
from tests.faults.power_cut.disk import Disk, DiskFile, put, resize, tear
from tests.faults.power_cut.house import House
from tests.faults.power_cut.vfs import ForgetfulFile, ForgetfulVFS, guarded

NAME = "failing"
ROUNDS_AFTER_IT = 3


class TreacherousFile(DiskFile):
    """What was pending at a failed sync is forgotten by everything but the readers."""

    def sync(self):
        for offset, data in self.pending:
            resize(self.durable, offset) if data is None else put(self.durable, offset, data)
        self.pending.clear()

    def fail(self, draw):
        for offset, data in self.pending:
            fate = draw.choice(("lost", "torn", "kept"))
            if fate == "lost":
                continue
            if data is None:
                resize(self.durable, offset)
            elif fate == "kept":
                put(self.durable, offset, data)
            else:
                tear(self.durable, offset, data, draw)
        self.pending.clear()


class FailingDisk(Disk):
    """The sync after `good` ones fails; all later ones too when it is `for_good`."""

    def __init__(self, files, draw, good=10**9, *, for_good=False, cut_after=None):
        super().__init__({}, cut_after)
        self.files = {
            name: TreacherousFile(bytearray(data), bytearray(data)) for name, data in files.items()
        }
        self.good = good
        self.for_good = for_good
        self.failed = 0
        self._draw = draw

    def sync(self, file):
        self.change()
        self.good -= 1
        if self.good == -1 or (self.good < 0 and self.for_good):
            self.failed += 1
            file.fail(self._draw)
            raise apsw.IOError("the disk did not write")
        file.sync()

    def lose_power_after(self, changes):
        """Let the power go after so many changes more."""
        self._cut_after = self.changes + changes

    def mend(self):
        """From now on syncs succeed; what was lost stays lost."""
        self.good, self.for_good = 10**9, False


class FailingVFS(ForgetfulVFS):
    def __init__(self):
        apsw.VFS.__init__(self, NAME, "")
        self.disk = Disk()

    def xOpen(self, name, flags):  # noqa: N802 - SQLite's own name
        filename = name.filename() if isinstance(name, apsw.URIFilename) else name
        if filename not in self.disk.files:
            guarded(self.disk.change)
            self.disk.files[filename] = TreacherousFile()
        super().xOpen(name, flags)
        return FailingFile(self.disk, self.disk.files[filename])


class FailingFile(ForgetfulFile):
    def xSync(self, flags):  # noqa: N802 - SQLite's own name
        if isinstance(self._disk, FailingDisk):
            guarded(lambda: self._disk.sync(self._file))
        else:  # whoever judges afterwards has a disk that works
            super().xSync(flags)


@dataclass
class FailingHouse(House):
    """As the box does: the first failure of the disk ends all acknowledgement, and its service."""

    trusts_no_log: bool = True
    granted_after_it: int = 0
    refused_starts: int = 0
    failures: int = 0  # of the disk, after which the box ended

    async def live(self, disk):
        """Start, and work until the disk fails or the power goes; then the process is gone."""
        self.vfs.disk = disk
        connection = None
        try:
            connection = self.start()
            await self._serve(connection, disk)
        except apsw.Error:
            self.refused_starts += 1  # it says so, and serves nobody
        finally:
            if connection is not None:
                killed = self.draw.random() < 0.5
                if killed:
                    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                with suppress(apsw.Error):
                    connection.close()

    def start(self):
        """The connections that a start opens one after the other, and what they do."""
        connection = self.open()
        try:
            if self.trusts_no_log and LOG in self.vfs.disk.files:
                write_log_again(connection, LogOnDisk(self.vfs.disk))
            connection.pragma("user_version")
        finally:
            connection.close()
        return self.open()

    def open(self):
        connection = apsw.Connection("live.db", flags=apsw.SQLITE_OPEN_READWRITE, vfs=NAME)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        configure(connection)
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        self.prepare(connection)
        return connection

    async def _serve(self, connection, disk):
        broken = []
        zones, tokens = newest_zone_database(), Tokens(self.draw.randbytes)
        writer = Writer(
            connection,
            lambda: Batch(connection, self.clock, zones, tokens),
            on_commit=lambda _: None,
            on_broken=broken.append,
            on_durable=Watermark(connection, Beside(disk, self.marks)).rise,
        )
        try:
            while not (broken or disk.is_dead):
                await self._round(writer)
                if self.draw.random() < 0.1:
                    writer.run_between(lambda: fold(connection, writer))
            before = len(self.facts)
            for _ in range(ROUNDS_AFTER_IT):
                await self._round(writer)
            self.granted_after_it += len(self.facts) - before
            self.failures += bool(broken and disk.failed)
        finally:
            await writer.close()

    async def _round(self, writer):
        self.clock.advance(1)
        await asyncio.gather(*(self._act(writer) for _ in range(self.draw.randint(1, 9))))


class LogOnDisk:
    """What `LogBeside` is on a disk that works."""

    def __init__(self, disk):
        self._disk = disk
        self._file = disk.files[LOG]

    def write_again(self):
        guarded(self._disk.change)
        self._file.write(0, bytes(self._file.live))

    def sync(self):
        guarded(lambda: self._disk.sync(self._file))


def fold(connection, writer):
    """On the writer's thread: as the box's folder does (appliance/store/folding.py)."""
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except apsw.IOError as trouble:
        writer._loop.call_soon_threadsafe(writer.fail, trouble)
