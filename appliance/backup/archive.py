"""Backup format: the files in a backup and the encrypted stream that contains them.

The file: `VENUEBOX BACKUP 1`, one line of readable JSON, then chunks. A chunk is AES-256-GCM
under a key for this file only. Its nonce is its number and whether it is the last, and the JSON
line is authenticated with each chunk, so a changed, missing, moved or truncated part is detected.
"""

import hashlib
import io
import json
import os
import re
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
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
_LEVEL = 3  # zlib: a quarter of the size in a tenth of the time of the best level


@dataclass(frozen=True, slots=True)
class Header:
    """The unencrypted header: venue, time, program version, schema and key check."""

    venue: str
    slug: str
    venue_id: str
    made_at: str  # an instant of the interface
    version: str
    schema: int
    key_check: str
    salt: str  # hex


def read_header(file: BinaryIO) -> tuple[Header, bytes]:
    """Read the header. Returns it with its raw bytes and leaves `file` at the first chunk.

    Raises OperatorError if the file is no backup or its header is damaged.
    """
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        raise OperatorError("this file is not a venuebox backup, or its header is damaged")
    line = file.readline(_LONGEST_HEADER)
    try:
        header = msgspec.convert(asdict(Header(**json.loads(line))), Header)  # checks the types
        bytes.fromhex(header.salt)
        parse_instant(header.made_at)
    except (msgspec.ValidationError, ValueError, TypeError, OverflowError, RecursionError):
        raise OperatorError("the header of this backup is damaged: use another backup") from None
    return header, _MAGIC + line


class SealedWriter:
    """Writes a backup: compresses and encrypts what is written to it into `file`."""

    def __init__(self, file: BinaryIO, header: Header, key: RecoveryKey) -> None:
        line = _MAGIC + msgspec.json.encode(header) + b"\n"
        file.write(line)
        self._file = file
        self._cipher, self._about = _cipher(header, line, key)
        self._compressor = zlib.compressobj(_LEVEL)
        self._waiting = bytearray()
        self._number = 0

    def write(self, data: bytes) -> int:
        """Write `data`, as for any file. Returns its length."""
        self._take(self._compressor.compress(data))
        return len(data)

    def finish(self) -> None:
        """Write the last chunk. Without it the backup cannot be read."""
        self._take(self._compressor.flush())
        self._seal(bytes(self._waiting), is_last=True)

    def _take(self, compressed: bytes) -> None:
        self._waiting += compressed
        while len(self._waiting) > _CHUNK:
            self._seal(bytes(self._waiting[:_CHUNK]), is_last=False)
            del self._waiting[:_CHUNK]

    def _seal(self, data: bytes, *, is_last: bool) -> None:
        self._file.write(self._cipher.encrypt(_nonce(self._number, is_last), data, self._about))
        self._number += 1


class SealedReader:
    """Reads a backup: returns authenticated, decrypted data in the original order."""

    def __init__(self, file: BinaryIO, key: RecoveryKey) -> None:
        """Raises OperatorError if the file is no backup or belongs to another key."""
        self.header, line = read_header(file)
        if self.header.key_check != key.check:
            raise OperatorError("this backup belongs to another recovery key: use that kit")
        self._file = file
        self._cipher, self._about = _cipher(self.header, line, key)
        self._decompressor = zlib.decompressobj()
        self._ready = b""
        self._next = file.read(_CHUNK + _TAG)
        self._number = 0
        self._ended = False

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes, b"" at the end. Raises OperatorError if damaged."""
        while not self._ready and not self._ended:
            self._open_chunk()
        given, self._ready = self._ready[:size], self._ready[size:]
        return given

    def finish(self) -> None:
        """Read to the end, to authenticate every chunk."""
        while self.read(_CHUNK):
            pass

    def _open_chunk(self) -> None:
        sealed, self._next = self._next, self._file.read(_CHUNK + _TAG)
        is_last = not self._next
        try:
            opened = self._cipher.decrypt(_nonce(self._number, is_last), sealed, self._about)
            self._ready = self._decompressor.decompress(opened)
        except (InvalidTag, ValueError, zlib.error):
            raise OperatorError("this backup is damaged or cut off: use another one") from None
        self._number += 1
        self._ended = is_last


def _cipher(header: Header, line: bytes, key: RecoveryKey) -> tuple[AESGCM, bytes]:
    own_key = key.derive(_PURPOSE, bytes.fromhex(header.salt))
    return AESGCM(own_key), hashlib.sha256(line).digest()


def _nonce(number: int, is_last: bool) -> bytes:  # noqa: FBT001 - the two halves of a nonce
    return number.to_bytes(11, "big") + bytes([is_last])


# Called with bytes done and total bytes.
Progress = Callable[[int, int], None]

_MANIFEST = "manifest.json"
_KEPT = re.compile(
    r"(live|test)\.db|settings\.toml|erasures\.jsonl|(secrets|tls)/[\w][\w.-]*(/[\w][\w.-]*)?"
)
_BLOCK = 1 << 20
_DATABASE = re.compile(r"(live|test)\.db")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Each file with its size and SHA-256; each database with the row count of each table."""

    files: dict[str, tuple[int, str]]
    rows: dict[str, dict[str, int]]

    @property
    def size(self) -> int:
        """Total size of the files, in bytes."""
        return sum(size for size, _ in self.files.values())


def list_files(directory: DataDirectory, copies: dict[EnvironmentName, Path]) -> dict[str, Path]:
    """List the files to back up, by name in the backup; `copies` replace the databases."""
    found = {f"{name}.db": path for name, path in copies.items()}
    root = directory.root
    folders = (*(root / "secrets").rglob("*"), *(root / "tls").rglob("*"))
    for path in (directory.settings_file, root / "erasures.jsonl", *sorted(folders)):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not path.is_symlink() and _KEPT.fullmatch(name):
            found[name] = path
    return found


def make_manifest(files: dict[str, Path]) -> Manifest:
    """Read every file and compute its manifest entry."""
    return Manifest(
        {name: (path.stat().st_size, _hash(path)) for name, path in files.items()},
        {name: count_rows(path) for name, path in files.items() if _DATABASE.fullmatch(name)},
    )


def write_archive(
    sealed: SealedWriter, manifest: Manifest, files: dict[str, Path], progress: Progress
) -> None:
    """Write the manifest and the files, then finish the stream."""
    done = 0
    with tarfile.open(fileobj=sealed, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]  # it only needs write()
        _add(archive, _MANIFEST, io.BytesIO(msgspec.json.encode(manifest)))
        for name, path in files.items():
            with path.open("rb") as file:
                _add(archive, name, file)
            done += manifest.files[name][0]
            progress(done, manifest.size)
    sealed.finish()


def unpack_archive(sealed: SealedReader, folder: Path, progress: Progress) -> Manifest:
    """Unpack the files into `folder`, mode 0600, and check them. Returns the manifest.

    Raises OperatorError if a file is missing, differs from the manifest, or is not allowed.
    """
    manifest, done = None, 0
    found: dict[str, tuple[int, str]] = {}
    try:
        with tarfile.open(fileobj=sealed, mode="r|") as archive:  # type: ignore[call-overload]  # it only needs read()
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is None:
                    raise OperatorError(f"this backup contains an unexpected {member.name!r}")
                if manifest is None:
                    manifest = msgspec.json.decode(content.read(_BLOCK), type=Manifest)
                    continue
                if member.name not in manifest.files or not _KEPT.fullmatch(member.name):
                    raise OperatorError(f"this backup contains an unexpected {member.name!r}")
                found[member.name] = _unpack(content, folder / member.name)
                done += found[member.name][0]
                progress(done, manifest.size)
    except (tarfile.TarError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OperatorError(
            f"this backup is damaged ({type(error).__name__}): use another one"
        ) from None
    sealed.finish()
    if manifest is None or found != manifest.files:
        raise OperatorError("this backup is incomplete: use another one")
    return manifest


def _add(archive: tarfile.TarFile, name: str, file: BinaryIO) -> None:
    member = tarfile.TarInfo(name)
    member.size = file.seek(0, os.SEEK_END)
    member.mode = 0o600
    file.seek(0)
    archive.addfile(member, file)


def _unpack(content: IO[bytes], path: Path) -> tuple[int, str]:
    make_folder(path.parent)
    digest, size = hashlib.sha256(), 0
    with open(path, "xb", opener=open_private) as file:
        while block := content.read(_BLOCK):
            digest.update(block)
            size += file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return size, digest.hexdigest()


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
