"""The backup format: a tar archive, encrypted by age for the recovery key.

`age -d -i KEY FILE | tar x` opens a backup. Its first file, `manifest.json`, describes it. age
authenticates every byte, so a changed, missing or moved part is detected.
"""

import io
import os
import re
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
# The maximum size of age's unencrypted header. age reads a longer one very slowly.
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

    reader, writer = os.pipe()
    target = _Noting(file)
    with ThreadPoolExecutor(1) as pool, os.fdopen(reader, "rb") as plain:
        written = pool.submit(_write_tar, writer, manifest, files, progress)
        try:
            pyrage.encrypt_io(plain, target, [key.identity.to_public()])
        except pyrage.EncryptError as error:
            raise target.failure or OSError(str(error)) from None
    written.result()


def _write_tar(handle: int, manifest: Manifest, files: dict[str, Path], progress: Progress) -> None:
    described = msgspec.json.encode(manifest)
    made_at = parse_instant(manifest.made_at) // 1000
    done, total = 0, sum(path.stat().st_size for path in files.values())
    with os.fdopen(handle, "wb") as pipe, tarfile.open(fileobj=pipe, mode="w|") as tar:
        tar.addfile(_member(_MANIFEST, len(described), made_at), io.BytesIO(described))
        for name, path in files.items():
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                tar.addfile(_member(name, size, made_at), file)
            done += size
            progress(done, total)


def _member(name: str, size: int, made_at: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, made_at
    return member


class _Noting:
    """A file that age reads or writes. Records disk errors, which age hides, and the progress."""

    def __init__(self, file: BinaryIO, progress: Progress = lambda _done, _total: None) -> None:
        self._file, self._progress, self._done = file, progress, 0
        self._total = os.fstat(file.fileno()).st_size
        self.failure: OSError | None = None

    def read(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except OSError as error:
            self.failure = error
            raise
        self._done += len(data)
        self._progress(self._done, self._total)
        return data

    def write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.failure = error
            raise

    def flush(self) -> None:
        self._file.flush()


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
    reader, writer = os.pipe()
    source = _Noting(file, progress)
    with ThreadPoolExecutor(1) as pool:
        decrypted = pool.submit(_decrypt, source, writer, key)
        manifest, failure = None, None
        try:
            with os.fdopen(reader, "rb") as plain:
                manifest = _read_tar(plain, folder, newest_schema)
        except (OperatorError, OSError) as error:
            failure = error
        message = decrypted.result()
    if source.failure:
        raise _unreadable(source.failure)
    if isinstance(failure, OSError):
        raise failure
    if message == "No matching keys found":
        raise OperatorError(
            "this backup was encrypted with a different recovery key. Use the recovery kit of the "
            "box that made the backup."
        )
    if failure or manifest is None:
        raise failure or OperatorError(f"this backup is incomplete. {_UNUSABLE}")
    if message:
        raise OperatorError(f"this backup is damaged or truncated. {_UNUSABLE}")
    return manifest


def _decrypt(source: _Noting, handle: int, key: RecoveryKey) -> str:
    """Write the decrypted archive to the pipe `handle`. Return the error, or ""."""
    import pyrage  # noqa: PLC0415 - see above

    # If the other end was closed, closing this one fails as well.
    with suppress(BrokenPipeError), os.fdopen(handle, "wb") as pipe:
        try:
            pyrage.decrypt_io(source, pipe, [key.identity])
        except (pyrage.DecryptError, OSError) as error:
            return str(error) or type(error).__name__
    return ""


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


def _read_tar(plain: BinaryIO, folder: Path | None, newest_schema: int) -> Manifest | None:
    """Read the archive to its end, check it, and write its files. None means that it is cut off."""
    manifest, names = None, set[str]()
    while any(block := plain.read(_TAR_BLOCK)):
        member = _read_header(block)
        if manifest is None:
            manifest = _read_manifest(plain, member, newest_schema)
        elif not _ALLOWED_NAMES.fullmatch(member.name) or member.name in names:
            raise OperatorError(f"this backup contains an unexpected file {member.name!r}")
        else:
            names.add(member.name)
            _read_file(plain, member, folder)
        plain.read(-member.size % _TAR_BLOCK)
    is_whole = len(block) == _TAR_BLOCK and names >= _NEEDED
    while plain.read(_BLOCK):  # age authenticates the rest as well
        pass
    return manifest if is_whole else None


def _read_manifest(plain: BinaryIO, member: tarfile.TarInfo, newest_schema: int) -> Manifest:
    if member.name != _MANIFEST or member.size > _BLOCK:
        raise OperatorError(f"this file is not a backup of venuebox. {_UNUSABLE}")
    try:
        manifest = msgspec.json.decode(plain.read(member.size), type=Manifest)
        parse_instant(manifest.made_at)
    except (ValueError, OverflowError, RecursionError):
        raise OperatorError(f"the manifest of this backup is damaged. {_UNUSABLE}") from None
    if manifest.schema > newest_schema:
        raise OperatorError(
            f"this backup was made by venuebox {manifest.version}, which is newer. Restore it with "
            "that version."
        )
    return manifest


def _read_file(plain: BinaryIO, member: tarfile.TarInfo, folder: Path | None) -> None:
    path = Path(os.devnull) if folder is None else folder / member.name
    if folder is not None:
        make_folder(path.parent)
    with open(path, "wb", opener=open_private) as file:
        left = member.size
        while left and (block := plain.read(min(left, _BLOCK))):
            file.write(block)
            left -= len(block)
        file.flush()
        if folder is not None:
            os.fsync(file.fileno())


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
