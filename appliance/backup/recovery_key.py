"""The recovery key: 256 random bits that open every backup of a box, and how a person writes it."""

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from appliance.data_directory import DataDirectory
from appliance.durable import atomic_write, exclusive
from appliance.errors import Trouble
from appliance.file_ownership import make_folder
from appliance.tokens import Tokens

_BYTES = 32
_CHECK_BYTES = 3  # of the printed form: a mistyped letter is found in all but 1 of 16 million cases
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's: no I, L, O or U
_LOOKALIKES = str.maketrans({"I": "1", "L": "1", "O": "0"})
_DIGITS = str.maketrans(_ALPHABET, "0123456789ABCDEFGHIJKLMNOPQRSTUV")  # as `int` reads them
_LETTERS = (_BYTES + _CHECK_BYTES) * 8 // 5
_GROUP = 4
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RecoveryKey:
    """What the recovery kit says. Whoever has it and a backup has the box."""

    raw: bytes

    def __repr__(self) -> str:
        return "RecoveryKey(…)"

    @property
    def text(self) -> str:
        """56 letters and digits in groups of four, the last ones a checksum."""
        number = int.from_bytes(self.raw + _checksum(self.raw), "big")
        letters = "".join(
            _ALPHABET[number >> shift & 31] for shift in range((_LETTERS - 1) * 5, -1, -5)
        )
        return "-".join(letters[at : at + _GROUP] for at in range(0, _LETTERS, _GROUP))

    @property
    def check(self) -> str:
        """Says in the open which key opens a backup, and nothing about it: 16 hex digits."""
        return self.derive(b"venuebox backup key check", b"")[:8].hex()

    def derive(self, purpose: bytes, salt: bytes) -> bytes:
        """A 32-byte key for one purpose, by HKDF-SHA256."""
        return HKDF(algorithm=SHA256(), length=32, salt=salt, info=purpose).derive(self.raw)


def parse_recovery_key(text: str) -> RecoveryKey:
    """The key as a person or a QR reader typed it; Trouble when a letter is wrong or missing."""
    letters = "".join(c for c in text.upper() if c.isalnum()).translate(_LOOKALIKES)
    if len(letters) != _LETTERS or any(c not in _ALPHABET for c in letters):
        raise Trouble(
            f"the recovery key has {_LETTERS} letters and digits, these are {len(letters)}: "
            "type it as the recovery kit shows it"
        )
    number = int(letters.translate(_DIGITS), 32)
    both = number.to_bytes(_BYTES + _CHECK_BYTES, "big")
    raw = both[:_BYTES]
    if not hmac.compare_digest(both[_BYTES:], _checksum(raw)):
        raise Trouble("a letter of the recovery key is wrong: compare it with the recovery kit")
    return RecoveryKey(raw)


def recovery_key_file(directory: DataDirectory) -> Path:
    """Where the box keeps its own copy, which makes the nightly backups possible."""
    return directory.root / "secrets" / "recovery.key"


def find_recovery_key(directory: DataDirectory) -> RecoveryKey | None:
    """The box's key, or None when it has none yet; Trouble when the file is damaged."""
    path = recovery_key_file(directory)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Trouble(f"{path} cannot be read ({error.strerror}): run as its owner") from None
    if len(raw) != _BYTES + _CHECK_BYTES or raw[_BYTES:] != _checksum(raw[:_BYTES]):
        raise Trouble(
            f"{path} is damaged: delete it, and print the new recovery kit that backup kit makes"
        )
    return RecoveryKey(raw[:_BYTES])


def ensure_recovery_key(directory: DataDirectory, tokens: Tokens) -> RecoveryKey:
    """The box's key; made the first time it is asked for, however many ask at once."""
    folder = recovery_key_file(directory).parent
    make_folder(folder)
    with exclusive(folder, _PATIENCE_SECONDS, "the making of the recovery key"):
        return find_recovery_key(directory) or keep_recovery_key(
            directory, RecoveryKey(tokens.random_bytes(_BYTES))
        )


def keep_recovery_key(directory: DataDirectory, key: RecoveryKey) -> RecoveryKey:
    """Make it the box's key from now on."""
    path = recovery_key_file(directory)
    make_folder(path.parent)
    atomic_write(path, key.raw + _checksum(key.raw))
    return key


def _checksum(raw: bytes) -> bytes:
    return hashlib.sha256(b"venuebox recovery key" + raw).digest()[:_CHECK_BYTES]
