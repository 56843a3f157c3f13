"""The backup format: a tar archive, encrypted by age for the recovery key.

`age -d -i KEY FILE | tar x` opens a backup. Its first file, `manifest.json`, describes it. age
authenticates every byte, so a changed, missing or moved part is detected.
"""

import os
import re
import tarfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from appliance.backup.recovery_key import RecoveryKey
from appliance.clock import parse_instant
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import make_folder, open_private
from appliance.core.tokens import EnvironmentName

_MANIFEST = "manifest.json"
_ALLOWED_NAMES = re.compile(
    r"(live|test)\.db|settings\.toml|erasures\.jsonl"
    r"|(secrets|tls)/\w[\w.-]{,40}(/\w[\w.-]{,40})?",  # a name in a tar header has 100 bytes
    re.ASCII,
)
_NEEDED = {"live.db", "test.db", "secrets/master.key"}
_BLOCK, _TAR_BLOCK = 1 << 20, 512
_END = bytes(2 * _TAR_BLOCK)
# The unencrypted part of a file of age. Of a longer one, age would read each line for a second.
_MAGIC, _HEADER_END, _HEADER_MAX = b"age-encryption.org/", b"\n--- ", 4096
_UNUSABLE = "Use a different backup."

# A progress callback. It receives the number of bytes processed and the total number of bytes.
Progress = Callable[[int, int], None]


class Manifest(msgspec.Struct, frozen=True):
    """What a backup contains. Members of later versions are ignored.

    `number` is the one in the file's name, and `rows` counts the rows of each table by the name of
    the database file.
    """

    venue: str
    venue_id: str
    number: int
    made_at: str  # ISO 8601 in UTC, as in the interface
    version: str
    schema: int
    rows: dict[str, dict[str, int]]

    @property
    def reservations(self) -> int:
        """The number of reservations in the live database."""
        return self.rows.get("live.db", {}).get("reservation", 0)


def list_files(directory: DataDirectory, copies: dict[EnvironmentName, Path]) -> dict[str, Path]:
    """Return the files to back up: the path of each file by its name in the backup.

    `copies` contains snapshots of the databases, which are backed up instead of the open databases.
    """
    found = {f"{name}.db": path for name, path in copies.items()}
    root = directory.root
    folders = (*(root / "secrets").rglob("*"), *(root / "tls").rglob("*"))
    for path in (directory.settings_file, root / "erasures.jsonl", *sorted(folders)):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not path.is_symlink() and _ALLOWED_NAMES.fullmatch(name):
            found[name] = path
    return found


def write_archive(
    file: BinaryIO, manifest: Manifest, files: dict[str, Path], key: RecoveryKey, progress: Progress
) -> None:
    """Write the encrypted archive of `files` to `file`. Raises OSError."""
    import pyrage  # noqa: PLC0415 - a box that makes no backup does not need it

    source = _Stream(_make_blocks(manifest, files, progress), file)
    try:
        pyrage.encrypt_io(source, source, [key.identity.to_public()])
    except pyrage.EncryptError as error:
        raise source.failure or OSError(str(error)) from None


class _Stream:
    """What age reads and writes. Remembers an exception, which age replaces by its own."""

    def __init__(self, blocks: Iterator[bytes], file: BinaryIO) -> None:
        self._blocks, self._file = filter(None, blocks), file  # an empty block would be the end
        self._rest = b""
        self.failure: Exception | None = None

    def read(self, size: int) -> bytes:
        try:
            if not self._rest:
                self._rest = next(self._blocks, b"")
        except Exception as error:
            self.failure = error
            raise
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.failure = error
            raise

    def flush(self) -> None:
        self._file.flush()


def _make_blocks(manifest: Manifest, files: dict[str, Path], progress: Progress) -> Iterator[bytes]:
    """Yield the archive: headers, contents and padding, at most 1 MiB at once."""
    made_at = parse_instant(manifest.made_at) // 1000
    described = msgspec.json.encode(manifest)
    yield _tar_header(_MANIFEST, len(described), made_at) + described + _padding(len(described))
    total = sum(path.stat().st_size for path in files.values())
    done = 0
    for name, path in files.items():
        with path.open("rb") as file:
            size = left = os.fstat(file.fileno()).st_size
            yield _tar_header(name, size, made_at)
            while block := file.read(min(left, _BLOCK)):
                yield block
                left -= len(block)
                done += len(block)
                progress(done, total)
        if left:
            raise OSError(f"{name} became shorter")
        yield _padding(size)
    yield _END


def _tar_header(name: str, size: int, made_at: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, made_at
    return member.tobuf(tarfile.GNU_FORMAT)  # USTAR has no room for sizes from 8 GiB


def _padding(size: int) -> bytes:
    return bytes(-size % _TAR_BLOCK)


def read_archive(
    file: BinaryIO, key: RecoveryKey, folder: Path | None, progress: Progress, newest_schema: int
) -> Manifest:
    """Read a whole backup and return its manifest. Unpack it into `folder`, if given.

    `file` is the result of `open_backup`.

    Memory and disk space are bounded by the size of the file. Raises OperatorError if the file is
    not a backup, cannot be read, was encrypted for another key, is damaged, lacks a file, contains
    one that a backup must not contain, or is of a newer schema than `newest_schema`. Raises OSError
    if a file cannot be unpacked.
    """
    import pyrage  # noqa: PLC0415 - see above

    source, unpacker = _Source(file, progress), _Unpacker(folder, newest_schema)
    try:
        pyrage.decrypt_io(source, unpacker, [key.identity])
        return unpacker.finish()
    except (pyrage.DecryptError, OSError, OperatorError) as error:
        if source.failure:
            raise _unreadable(source.failure) from None
        if unpacker.failure:
            raise unpacker.failure from None
        if str(error) == "No matching keys found":
            raise OperatorError(
                "this backup was encrypted with a different recovery key. Use the recovery "
                "kit of the box that made the backup."
            ) from None
        if isinstance(error, OperatorError):
            raise
        raise OperatorError(f"this backup is damaged or truncated. {_UNUSABLE}") from None


@contextmanager
def open_backup(path: Path) -> Iterator[BinaryIO]:
    """Open a backup so that it is read from the disk instead of the kernel's cache.

    Raises OperatorError if the file cannot be read or is not encrypted by age.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}") from None
    with file:
        with suppress(OSError):  # not all file systems support `posix_fadvise`
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            start = file.read(_HEADER_MAX)
            file.seek(0)
        except OSError as error:
            raise _unreadable(error) from None
        if not start.startswith(_MAGIC) or _HEADER_END not in start:
            raise OperatorError(f"this file is not a backup, or its start is damaged. {_UNUSABLE}")
        yield file


def _unreadable(error: OSError) -> OperatorError:
    return OperatorError(f"this backup cannot be read ({error.strerror}). {_UNUSABLE}")


class _Source:
    """What age decrypts. Remembers an error of the disk, and tells the progress."""

    def __init__(self, file: BinaryIO, progress: Progress) -> None:
        self._file, self._progress = file, progress
        self._done, self._told = 0, 0
        self._total = os.fstat(file.fileno()).st_size
        self.failure: OSError | None = None

    def read(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except OSError as error:
            self.failure = error
            raise
        self._done += len(data)
        if self._done - self._told >= _BLOCK or not data:
            self._told = self._done
            self._progress(self._done, self._total)
        return data


class _Unpacker:
    """Takes the decrypted archive in pieces of any size, checks it and writes its files."""

    def __init__(self, folder: Path | None, newest_schema: int) -> None:
        self._folder, self._newest = folder, newest_schema
        self._manifest: Manifest | None = None
        self._names: set[str] = set()
        self._is_complete = False
        self._buffer = bytearray()
        self._parser = self._parse()
        next(self._parser)
        self.failure: Exception | None = None

    def write(self, data: bytes) -> int:
        self._buffer += data
        try:
            next(self._parser, None)
        except Exception as error:
            self.failure = error
            raise
        return len(data)

    def flush(self) -> None:
        """Do nothing: `_parse` syncs each file."""

    def finish(self) -> Manifest:
        """Return the manifest. Raises OperatorError if the archive lacks a file or its end."""
        if self._manifest is None or not self._is_complete or not self._names >= _NEEDED:
            raise OperatorError(f"this backup is incomplete. {_UNUSABLE}")
        return self._manifest

    def _parse(self) -> Generator[None, None, None]:
        """Read the archive. Each `yield` waits for more data in the buffer."""
        while True:
            yield from self._wait_for(_TAR_BLOCK)
            block = self._take(_TAR_BLOCK)
            if not any(block):
                break
            member = _read_header(block)
            if self._manifest is None:
                self._manifest = yield from self._read_manifest(member)
            else:
                yield from self._read_file(member)
            padding = -member.size % _TAR_BLOCK
            yield from self._wait_for(padding)
            self._take(padding)
        self._is_complete = True
        while True:
            self._buffer.clear()
            yield

    def _read_manifest(self, member: tarfile.TarInfo) -> Generator[None, None, Manifest]:
        if member.name != _MANIFEST or member.size > _BLOCK:
            raise OperatorError(f"this file is not a backup of venuebox. {_UNUSABLE}")
        yield from self._wait_for(member.size)
        try:
            manifest = msgspec.json.decode(self._take(member.size), type=Manifest)
            parse_instant(manifest.made_at)
        except (ValueError, OverflowError, RecursionError):
            raise OperatorError(f"the manifest of this backup is damaged. {_UNUSABLE}") from None
        if manifest.schema > self._newest:
            raise OperatorError(
                f"this backup was made by venuebox {manifest.version}, which is newer. Restore it "
                "with that version."
            )
        return manifest

    def _read_file(self, member: tarfile.TarInfo) -> Generator[None, None, None]:
        if not _ALLOWED_NAMES.fullmatch(member.name) or member.name in self._names:
            raise OperatorError(f"this backup contains an unexpected file {member.name!r}")
        self._names.add(member.name)
        if self._folder is None:
            yield from self._copy(member.size, lambda _: None)
            return
        path = self._folder / member.name
        make_folder(path.parent)
        with open(path, "xb", opener=open_private) as file:
            yield from self._copy(member.size, file.write)
            file.flush()
            os.fsync(file.fileno())

    def _copy(self, left: int, write: Callable[[bytes], object]) -> Generator[None, None, None]:
        while left:
            yield from self._wait_for(1)
            piece = self._take(min(left, len(self._buffer)))
            write(piece)
            left -= len(piece)

    def _wait_for(self, size: int) -> Generator[None, None, None]:
        while len(self._buffer) < size:
            yield

    def _take(self, size: int) -> bytes:
        piece = bytes(self._buffer[:size])
        del self._buffer[:size]
        return piece


def _read_header(block: bytes) -> tarfile.TarInfo:
    """Parse a tar header. Only plain files are accepted, so no member is larger than it is."""
    try:
        member = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.HeaderError, UnicodeDecodeError) as error:
        raise OperatorError(
            f"this backup is damaged ({type(error).__name__}). {_UNUSABLE}"
        ) from None
    if member.type != tarfile.REGTYPE or member.size < 0:
        raise OperatorError(f"this backup contains an unexpected file {member.name!r}")
    return member
