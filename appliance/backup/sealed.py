r"""A sealed stream: compressed, cut into chunks, each encrypted under its place in the file.

    VENUEBOX BACKUP 1\n  one line of JSON that anybody may read\n  chunks

A chunk is AES-256-GCM under a key for this file alone; its nonce is its number and whether it
is the last, and the line of JSON is authenticated with each. So a chunk that is changed, left
out, moved, or cut off at the end is found, and so is any change to the line.
"""

import hashlib
import json
import zlib
from dataclasses import asdict, dataclass
from typing import BinaryIO

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from appliance.backup.recovery_key import RecoveryKey
from appliance.clock import parse_instant
from appliance.errors import Trouble

_MAGIC = b"VENUEBOX BACKUP 1\n"
_CHUNK = 1 << 20
_TAG = 16
_LONGEST_HEADER = 4096
_PURPOSE = b"venuebox backup"
_LEVEL = 3  # a quarter of the size for a tenth of the time of the best


@dataclass(frozen=True, slots=True)
class Header:
    """What anybody who holds the file may know: which box, when, by which version, which key."""

    venue: str
    slug: str
    venue_id: str
    made_at: str  # an instant of the interface
    version: str
    schema: int
    key_check: str
    salt: str  # hex


def read_header(file: BinaryIO) -> tuple[Header, bytes]:
    """The header and its bytes; the file stands at its first chunk then.

    Trouble when it is no backup.
    """
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        raise Trouble("this file is no venuebox backup, or its beginning is damaged")
    line = file.readline(_LONGEST_HEADER)
    try:
        header = msgspec.convert(asdict(Header(**json.loads(line))), Header)  # checks the types
        bytes.fromhex(header.salt)
        parse_instant(header.made_at)
    except (msgspec.ValidationError, ValueError, TypeError, OverflowError, RecursionError):
        raise Trouble("the beginning of this backup is damaged: use another backup") from None
    return header, _MAGIC + line


class SealedWriter:
    """Writes a backup: whatever is written to it is sealed into `file`."""

    def __init__(self, file: BinaryIO, header: Header, key: RecoveryKey) -> None:
        line = _MAGIC + msgspec.json.encode(header) + b"\n"
        file.write(line)
        self._file = file
        self._cipher, self._about = _cipher(header, line, key)
        self._compressor = zlib.compressobj(_LEVEL)
        self._waiting = bytearray()
        self._number = 0

    def write(self, data: bytes) -> int:
        """As of any file."""
        self._take(self._compressor.compress(data))
        return len(data)

    def finish(self) -> None:
        """Seal what is left, as the last chunk. Without it the file is worth nothing."""
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
    """Reads a backup: what it gives out was sealed with the key, in this order."""

    def __init__(self, file: BinaryIO, key: RecoveryKey) -> None:
        """Trouble when it is no backup, or sealed with another key."""
        self.header, line = read_header(file)
        if self.header.key_check != key.check:
            raise Trouble("this backup belongs to another recovery key: look for that kit")
        self._file = file
        self._cipher, self._about = _cipher(self.header, line, key)
        self._decompressor = zlib.decompressobj()
        self._ready = b""
        self._next = file.read(_CHUNK + _TAG)
        self._number = 0
        self._ended = False

    def read(self, size: int) -> bytes:
        """At most `size` bytes, none at the end. Trouble when the backup is damaged."""
        while not self._ready and not self._ended:
            self._open_chunk()
        given, self._ready = self._ready[:size], self._ready[size:]
        return given

    def finish(self) -> None:
        """Read to the end, so that nothing is left unproven."""
        while self.read(_CHUNK):
            pass

    def _open_chunk(self) -> None:
        sealed, self._next = self._next, self._file.read(_CHUNK + _TAG)
        is_last = not self._next
        try:
            opened = self._cipher.decrypt(_nonce(self._number, is_last), sealed, self._about)
            self._ready = self._decompressor.decompress(opened)
        except (InvalidTag, ValueError, zlib.error):
            raise Trouble("this backup is damaged or cut off: use another one") from None
        self._number += 1
        self._ended = is_last


def _cipher(header: Header, line: bytes, key: RecoveryKey) -> tuple[AESGCM, bytes]:
    own_key = key.derive(_PURPOSE, bytes.fromhex(header.salt))
    return AESGCM(own_key), hashlib.sha256(line).digest()


def _nonce(number: int, is_last: bool) -> bytes:  # noqa: FBT001 - the two halves of a nonce
    return number.to_bytes(11, "big") + bytes([is_last])
