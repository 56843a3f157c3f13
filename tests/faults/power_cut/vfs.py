"""SQLite on a forgetful disk: an apsw VFS whose files are those of the disk that is in it now."""

from typing import Any

import apsw

from tests.faults.power_cut.disk import Disk, DiskFile, PowerIsGone

NAME = "forgetful"


class ForgetfulVFS(apsw.VFS):
    """`disk` may be changed between two connections."""

    def __init__(self) -> None:
        super().__init__(NAME, "")
        self.disk = Disk()

    def xFullPathname(self, name: str) -> str:
        return name

    def xAccess(self, pathname: str, flags: int) -> bool:
        return pathname in self.disk.files

    def xDelete(self, filename: str, syncdir: bool) -> None:
        guarded(self.disk.change)
        self.disk.files.pop(filename, None)

    def xOpen(self, name: Any, flags: list[int]) -> "ForgetfulFile":
        filename = name.filename() if isinstance(name, apsw.URIFilename) else name
        guarded(self.disk.look)
        if filename not in self.disk.files:
            guarded(self.disk.change)
            self.disk.files[filename] = DiskFile()
        flags[1] = flags[0]
        return ForgetfulFile(self.disk, self.disk.files[filename])


class ForgetfulFile:
    """One open file. Locks are nobody's business: one connection has the disk for itself."""

    def __init__(self, disk: Disk, file: DiskFile) -> None:
        self._disk = disk
        self._file = file

    def xRead(self, amount: int, offset: int) -> bytes:
        guarded(self._disk.look)
        return bytes(self._file.live[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        guarded(self._disk.change)
        self._file.write(offset, bytes(data))

    def xTruncate(self, size: int) -> None:
        guarded(self._disk.change)
        self._file.truncate(size)

    def xSync(self, flags: int) -> None:
        guarded(self._disk.change)
        self._file.sync()

    def xFileSize(self) -> int:
        return len(self._file.live)

    def xSectorSize(self) -> int:
        return 4096

    def xDeviceCharacteristics(self) -> int:
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE  # as SQLite takes every disk to be

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xLock(self, level: int) -> None: ...

    def xUnlock(self, level: int) -> None: ...

    def xCheckReservedLock(self) -> bool:
        return False

    def xClose(self) -> None: ...


def guarded(do: Any) -> None:
    """What SQLite hears of a dead disk."""
    try:
        do()
    except PowerIsGone:
        raise apsw.IOError("the power is gone") from None
