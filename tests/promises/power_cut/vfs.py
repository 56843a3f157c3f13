"""A simulated disk for SQLite that loses unsynced writes.

At a power cut, each unsynced write is lost, torn or kept. A sync may fail, once or always: its
writes are lost, torn or kept in the same way, and no later sync repeats them. Readers still see
them, as in the kernel's page cache.
"""

import random

import apsw

NAME = "forgetful"
SECTOR = 512


class PowerIsGone(Exception):
    """The disk was used after the cut."""


class DiskFile:
    """A file. `durable`: the content after a power cut; `live`: what readers see."""

    def __init__(self, data=b""):
        self.durable, self.live, self.pending = bytearray(data), bytearray(data), []

    def write(self, offset, data):
        put(self.live, offset, data)
        self.pending.append((offset, data))

    def truncate(self, size):
        resize(self.live, size)
        self.pending.append((size, None))

    def sync(self):
        for offset, data in self.pending:
            resize(self.durable, offset) if data is None else put(self.durable, offset, data)
        self.pending.clear()

    def fail_sync(self, draw):
        self.durable = self.after_a_cut(draw)
        self.pending.clear()

    def after_a_cut(self, draw):
        """Return the content after a cut: each unsynced operation is kept, lost or torn."""
        survived = bytearray(self.durable)
        for offset, data in self.pending:
            fate = draw.choice(("lost", "torn", "kept"))
            if fate == "lost":
                continue
            if data is None:
                resize(survived, offset)
            elif fate == "kept":
                put(survived, offset, data)
            else:
                tear(survived, offset, data, draw)
        return survived


class Disk:
    """Files by name. After `cut_after` changes every operation fails.

    The sync after `good_syncs` fails; with `for_good`, all later ones fail too.
    """

    def __init__(self, files=None, cut_after=None, *, good_syncs=10**9, for_good=False, draw=None):
        self.files = {name: DiskFile(data) for name, data in (files or {}).items()}
        self.changes = self.failed_syncs = 0
        self.is_dead = False
        self.good_syncs, self.for_good = good_syncs, for_good
        self._cut_after, self._draw = cut_after, draw

    def change(self):
        """Count a change; cut the power if it is due."""
        self.look()
        self.changes += 1
        if self._cut_after is not None and self.changes > self._cut_after:
            self.is_dead = True
            raise PowerIsGone

    def look(self):
        if self.is_dead:
            raise PowerIsGone

    def sync(self, file):
        self.change()
        self.good_syncs -= 1
        if self.good_syncs == -1 or (self.good_syncs < 0 and self.for_good):
            self.failed_syncs += 1
            file.fail_sync(self._draw)
            raise apsw.IOError("the disk did not write")
        file.sync()

    def lose_power_after(self, changes):
        """Cut the power after this number of further changes."""
        self._cut_after = self.changes + changes

    def mend(self):
        """Let all later syncs succeed. Lost writes stay lost."""
        self.good_syncs, self.for_good = 10**9, False

    def after_a_cut(self, draw):
        """Return the files that the next start finds."""
        return {name: bytes(file.after_a_cut(draw)) for name, file in self.files.items()}


class ForgetfulVFS(apsw.VFS):
    """A VFS on `disk`, which may be replaced between two connections."""

    def __init__(self):
        super().__init__(NAME, "")
        self.disk = Disk()

    def xFullPathname(self, name):
        return name

    def xAccess(self, pathname, flags):
        return pathname in self.disk.files

    def xDelete(self, filename, syncdir):
        guarded(self.disk.change)
        self.disk.files.pop(filename, None)

    def xOpen(self, name, flags):
        filename = name.filename() if isinstance(name, apsw.URIFilename) else name
        guarded(self.disk.look)
        if filename not in self.disk.files:
            guarded(self.disk.change)
            self.disk.files[filename] = DiskFile()
        flags[1] = flags[0]
        return ForgetfulFile(self.disk, self.disk.files[filename])


class ForgetfulFile:
    """One open file. It needs no locks, because only one connection uses the disk."""

    def __init__(self, disk, file):
        self._disk = disk
        self._file = file

    def xRead(self, amount, offset):
        guarded(self._disk.look)
        return bytes(self._file.live[offset : offset + amount])

    def xWrite(self, data, offset):
        guarded(self._disk.change)
        self._file.write(offset, bytes(data))

    def xTruncate(self, size):
        guarded(self._disk.change)
        self._file.truncate(size)

    def xSync(self, flags):
        guarded(lambda: self._disk.sync(self._file))

    def xFileSize(self):
        return len(self._file.live)

    def xSectorSize(self):
        return 4096

    def xDeviceCharacteristics(self):
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE  # SQLite's own default for every disk

    def xFileControl(self, op, pointer):
        return False

    def xLock(self, level): ...

    def xUnlock(self, level): ...

    def xCheckReservedLock(self):
        return False

    def xClose(self): ...


def guarded(do):
    """Convert a power cut into an I/O error of SQLite."""
    try:
        do()
    except PowerIsGone:
        raise apsw.IOError("the power is gone") from None


def put(target, offset, data):
    if len(target) < offset:
        target.extend(bytes(offset - len(target)))
    target[offset : offset + len(data)] = data


def resize(target, size):
    if len(target) > size:
        del target[size:]
    else:
        target.extend(bytes(size - len(target)))


def tear(target, offset, data, draw: random.Random):
    """Write a random part of the sectors."""
    start = 0
    while start < len(data):
        end = min(len(data), start + SECTOR - (offset + start) % SECTOR)
        if draw.random() < 0.5:
            put(target, offset + start, data[start:end])
        start = end
