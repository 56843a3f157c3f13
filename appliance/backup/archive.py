"""The backup format: the files in a backup and the encrypted stream that contains them.

A backup file consists of the line `VENUEBOX BACKUP 1`, one line of unencrypted JSON (the header),
and encrypted chunks. Each chunk is encrypted with AES-256-GCM and a key derived for this file. The
nonce consists of the chunk's number and a flag for the last chunk, and each chunk authenticates the
header. Any changed, missing, moved or truncated part is therefore detected.
"""

import contextlib
import hashlib
import io
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from appliance.backup.recovery_key import RecoveryKey
from appliance.clock import parse_instant
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import make_folder, open_private
from appliance.core.tokens import EnvironmentName
from appliance.database.integrity import count_rows

_MAGIC = b"VENUEBOX BACKUP 1\n"
_CHUNK = 1 << 20
_TAG = 16
_LONGEST_HEADER = 4096
_PURPOSE = b"venuebox backup"
_LEVEL = 3  # this zlib level reduces the size to a quarter, ten times faster than level 9


@dataclass(frozen=True, slots=True)
class Header:
    """The unencrypted header: venue, time, program version, schema, key check and number."""

    venue: str
    slug: str
    venue_id: str
    made_at: str  # ISO 8601 in UTC, as in the interface
    version: str
    schema: int
    key_check: str
    salt: str  # hexadecimal
    # Backups are ordered by this number, because the box's clock may be wrong. Older versions wrote
    # no number.
    number: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """The sort key. Of two backups of a box, the later one has the greater key."""
        return self.number, self.made_at_ms

    @property
    def made_at_ms(self) -> int:
        """When the backup was made, in ms since 1970."""
        return parse_instant(self.made_at)


def read_header(file: BinaryIO) -> tuple[Header, bytes]:
    """Return the header and its raw bytes, and leave `file` at the first chunk.

    Raises OperatorError if the file is not a backup, or its header is damaged or cannot be read.
    """
    with _reading():
        file.seek(0)
        magic, line = file.read(len(_MAGIC)), file.readline(_LONGEST_HEADER)
    if magic != _MAGIC:
        raise OperatorError("this file is not a venuebox backup, or its header is damaged")
    try:
        # Members that it does not know are from a later version.
        header = msgspec.json.decode(line, type=Header)
        bytes.fromhex(header.salt)
        parse_instant(header.made_at)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise OperatorError("this backup's header is damaged. Use a different backup.") from None
    return header, _MAGIC + line


def show_header(path: Path) -> Header:
    """Return the header of the backup at `path`.

    Raises OperatorError if the file cannot be opened, is not a backup, or has a damaged header.
    """
    with open_backup(path) as file:
        return read_header(file)[0]


@contextlib.contextmanager
def open_backup(path: Path) -> Iterator[BinaryIO]:
    """Open a backup so that it is read from the disk instead of the kernel's cache.

    Raises OperatorError if the file cannot be opened.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}") from None
    with file:
        with contextlib.suppress(OSError):  # not all file systems support `posix_fadvise`
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        yield file


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Raise OperatorError instead of OSError, so that callers can try a different backup."""
    try:
        yield
    except OSError as error:
        raise OperatorError(
            f"this backup cannot be read ({error.strerror}). Use a different backup."
        ) from None


class SealedWriter:
    """A writable stream that compresses and encrypts a backup into `file`."""

    def __init__(self, file: BinaryIO, header: Header, key: RecoveryKey) -> None:
        line = _MAGIC + msgspec.json.encode(header) + b"\n"
        file.write(line)
        self._file = file
        self._cipher, self._associated_data = _cipher(header, line, key)
        self._compressor = zlib.compressobj(_LEVEL)
        self._buffer = bytearray()
        self._number = 0

    def write(self, data: bytes) -> int:
        """Write `data` and return its length."""
        self._add_compressed(self._compressor.compress(data))
        return len(data)

    def finish(self) -> None:
        """Write the last chunk. Readers reject a backup without its last chunk as damaged."""
        self._add_compressed(self._compressor.flush())
        self._seal(bytes(self._buffer), is_last=True)

    def _add_compressed(self, compressed: bytes) -> None:
        self._buffer += compressed
        while len(self._buffer) > _CHUNK:
            self._seal(bytes(self._buffer[:_CHUNK]), is_last=False)
            del self._buffer[:_CHUNK]

    def _seal(self, data: bytes, *, is_last: bool) -> None:
        self._file.write(
            self._cipher.encrypt(_nonce(self._number, is_last), data, self._associated_data)
        )
        self._number += 1


class SealedReader:
    """A readable stream of a backup's authenticated and decrypted content."""

    def __init__(self, file: BinaryIO, key: RecoveryKey) -> None:
        """Read the header.

        Raises OperatorError if the file is not a backup, cannot be read or was encrypted with a
        different key.
        """
        self.header, line = read_header(file)
        if self.header.key_check != key.check:
            raise OperatorError(
                "this backup was encrypted with a different recovery key. Use the recovery kit "
                "for the box that made the backup."
            )
        self._file = file
        self._cipher, self._associated_data = _cipher(self.header, line, key)
        self._decompressor = zlib.decompressobj()
        self._ready = b""
        self._next = self._read_chunk()
        self._number = 0
        self._ended = False

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, or b"" at the end.

        Raises OperatorError if the backup is damaged or cannot be read.
        """
        while not self._ready and not self._ended:
            self._open_chunk()
        data, self._ready = self._ready[:size], self._ready[size:]
        return data

    def finish(self) -> None:
        """Read to the end to authenticate every chunk."""
        while self.read(_CHUNK):
            pass

    def _read_chunk(self) -> bytes:
        with _reading():
            return self._file.read(_CHUNK + _TAG)

    def _open_chunk(self) -> None:
        sealed, self._next = self._next, self._read_chunk()
        is_last = not self._next
        try:
            opened = self._cipher.decrypt(
                _nonce(self._number, is_last), sealed, self._associated_data
            )
            self._ready = self._decompressor.decompress(opened)
        except (InvalidTag, ValueError, zlib.error):
            raise OperatorError(
                "this backup is damaged or truncated. Use a different backup."
            ) from None
        self._number += 1
        self._ended = is_last


def _cipher(header: Header, line: bytes, key: RecoveryKey) -> tuple[AESGCM, bytes]:
    file_key = key.derive(_PURPOSE, bytes.fromhex(header.salt))
    return AESGCM(file_key), hashlib.sha256(line).digest()


def _nonce(number: int, is_last: bool) -> bytes:  # noqa: FBT001 - called in this file only
    return number.to_bytes(11, "big") + bytes([is_last])


# A progress callback. It receives the number of bytes processed and the total number of bytes.
Progress = Callable[[int, int], None]

_MANIFEST = "manifest.json"
_ALLOWED_NAMES = re.compile(
    r"(live|test)\.db|settings\.toml|erasures\.jsonl|(secrets|tls)/[\w][\w.-]*(/[\w][\w.-]*)?"
)
_BLOCK = 1 << 20
_DATABASE = re.compile(r"(live|test)\.db")


@dataclass(frozen=True, slots=True)
class Manifest:
    """The size and SHA-256 of each file, and the row counts of the tables in each database."""

    files: dict[str, tuple[int, str]]
    rows: dict[str, dict[str, int]]

    @property
    def size(self) -> int:
        """The total size of the files, in bytes."""
        return sum(size for size, _ in self.files.values())


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


def _make_manifest(files: dict[str, Path]) -> Manifest:
    """Read all `files` and return their manifest."""
    return Manifest(
        {name: _measure_file(path) for name, path in files.items()},
        {name: count_rows(path) for name, path in files.items() if _DATABASE.fullmatch(name)},
    )


def write_archive(sealed: SealedWriter, files: dict[str, Path], progress: Progress) -> None:
    """Write the manifest and the files, then finish the stream."""
    manifest, done = _make_manifest(files), 0
    with tarfile.open(fileobj=sealed, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]  # tarfile only calls write()
        _add(archive, _MANIFEST, io.BytesIO(msgspec.json.encode(manifest)))
        for name, path in files.items():
            with path.open("rb") as file:
                _add(archive, name, file)
            done += manifest.files[name][0]
            progress(done, manifest.size)
    sealed.finish()


def read_archive(sealed: SealedReader, folder: Path | None, progress: Progress) -> Manifest:
    """Check the files and return the manifest. Unpack them into `folder`, if given, with mode 0600.

    Raises OperatorError if the archive is damaged, or if a file is missing, differs from the
    manifest or has a name that a backup must not contain.
    """
    manifest, done = None, 0
    found: dict[str, tuple[int, str]] = {}
    try:
        with tarfile.open(fileobj=sealed, mode="r|") as archive:  # type: ignore[call-overload]  # tarfile only calls read()
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is None:
                    raise OperatorError(f"this backup contains an unexpected file {member.name!r}")
                if manifest is None:  # the manifest is the first member
                    manifest = msgspec.json.decode(content.read(_BLOCK), type=Manifest)
                    continue
                if member.name not in manifest.files or not _ALLOWED_NAMES.fullmatch(member.name):
                    raise OperatorError(f"this backup contains an unexpected file {member.name!r}")
                path = None if folder is None else folder / member.name
                found[member.name] = _measure(content) if path is None else _unpack(content, path)
                done += found[member.name][0]
                progress(done, manifest.size)
    except (tarfile.TarError, ValueError) as error:
        raise OperatorError(
            f"this backup is damaged ({type(error).__name__}). Use a different backup."
        ) from None
    sealed.finish()
    if manifest is None or found != manifest.files:
        raise OperatorError("this backup is incomplete. Use a different backup.")
    return manifest


def _add(archive: tarfile.TarFile, name: str, file: BinaryIO) -> None:
    member = tarfile.TarInfo(name)
    member.size = file.seek(0, os.SEEK_END)
    member.mode = 0o600
    file.seek(0)
    archive.addfile(member, file)


def _unpack(content: IO[bytes], path: Path) -> tuple[int, str]:
    make_folder(path.parent)
    with open(path, "xb", opener=open_private) as file:
        found = _measure(content, file.write)
        file.flush()
        os.fsync(file.fileno())
    return found


def _measure(
    content: IO[bytes], write: Callable[[bytes], object] = lambda _: None
) -> tuple[int, str]:
    """Return the size and the SHA-256 of `content`, and pass each block to `write`."""
    digest, size = hashlib.sha256(), 0
    while block := content.read(_BLOCK):
        digest.update(block)
        write(block)
        size += len(block)
    return size, digest.hexdigest()


def _measure_file(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return _measure(file)
