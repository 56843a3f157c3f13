"""The recovery key, which decrypts every backup of a box, and the printable recovery kit."""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import jinja2
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, exclusive, make_folder
from appliance.core.i18n import load_languages
from appliance.core.i18n import mark as _
from appliance.core.qr import qr_blocks, qr_svg
from appliance.core.tokens import Tokens

_BYTES = 32
_CHECK_BYTES = 3  # length of the checksum, which misses 1 in 16 million typing errors
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's alphabet, without I, L, O and U
_LOOKALIKES = str.maketrans({"I": "1", "L": "1", "O": "0"})
_RFC_4648 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"  # the alphabet of the `base64` module
_LETTERS = (_BYTES + _CHECK_BYTES) * 8 // 5
_GROUP = 4
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RecoveryKey:
    """The secret that the recovery kit shows. It decrypts every backup of the box."""

    raw: bytes

    def __repr__(self) -> str:
        return "RecoveryKey(…)"

    @property
    def text(self) -> str:
        """The printed form: 56 letters and digits in groups of four, including a checksum."""
        encoded = base64.b32encode(self.raw + _checksum(self.raw)).decode()
        letters = encoded.translate(str.maketrans(_RFC_4648, _ALPHABET))
        return "-".join(letters[at : at + _GROUP] for at in range(0, _LETTERS, _GROUP))

    @property
    def check(self) -> str:
        """A public identifier of the key: 16 hex digits that reveal nothing else about it."""
        return self.derive(b"venuebox backup key check", b"")[:8].hex()

    def derive(self, purpose: bytes, salt: bytes) -> bytes:
        """Derive a 32-byte key for one `purpose` with HKDF-SHA256."""
        return HKDF(algorithm=SHA256(), length=32, salt=salt, info=purpose).derive(self.raw)


def parse_recovery_key(text: str) -> RecoveryKey:
    """Parse a typed or scanned key. Raises OperatorError if its length or checksum is wrong."""
    letters = "".join(c for c in text.upper() if c.isalnum()).translate(_LOOKALIKES)
    if len(letters) != _LETTERS or any(c not in _ALPHABET for c in letters):
        raise OperatorError(
            f"the recovery key has {_LETTERS} letters and digits, but {len(letters)} were "
            "typed. Type it as the recovery kit shows it."
        )
    decoded = base64.b32decode(letters.translate(str.maketrans(_ALPHABET, _RFC_4648)))
    raw = decoded[:_BYTES]
    if not hmac.compare_digest(decoded[_BYTES:], _checksum(raw)):
        raise OperatorError(
            "the recovery key contains a typing error. Compare it with the recovery kit."
        )
    return RecoveryKey(raw)


def recovery_key_file(directory: DataDirectory) -> Path:
    """Return the path of the recovery key that encrypts the box's backups."""
    return directory.root / "secrets" / "recovery.key"


def find_recovery_key(directory: DataDirectory) -> RecoveryKey | None:
    """Return the box's recovery key, or None if it has none.

    Raises OperatorError if the file is damaged or cannot be read.
    """
    path = recovery_key_file(directory)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OperatorError(
            f"{path} cannot be read ({error.strerror}). Run this command as the file's owner."
        ) from None
    if len(raw) != _BYTES + _CHECK_BYTES or raw[_BYTES:] != _checksum(raw[:_BYTES]):
        raise OperatorError(
            f"{path} is damaged. Delete it, then print a new recovery kit with venuebox backup kit."
        )
    return RecoveryKey(raw[:_BYTES])


def ensure_recovery_key(directory: DataDirectory, tokens: Tokens) -> RecoveryKey:
    """Return the box's recovery key, and create it on first use.

    Several processes may call it at the same time. Raises OperatorError if the key file is damaged
    or cannot be read, or if another process locks its folder for more than 30 s.
    """
    folder = recovery_key_file(directory).parent
    make_folder(folder)
    with exclusive(
        folder, _PATIENCE_SECONDS, "another process is creating the recovery key. Try again."
    ):
        return find_recovery_key(directory) or keep_recovery_key(
            directory, RecoveryKey(tokens.random_bytes(_BYTES))
        )


def keep_recovery_key(directory: DataDirectory, key: RecoveryKey) -> RecoveryKey:
    """Store `key` as the box's recovery key and return it."""
    path = recovery_key_file(directory)
    make_folder(path.parent)
    atomic_write(path, key.raw + _checksum(key.raw))
    return key


def _checksum(raw: bytes) -> bytes:
    return hashlib.sha256(b"venuebox recovery key" + raw).digest()[:_CHECK_BYTES]


_TITLE, _KEY = _("Recovery kit"), _("Recovery key")
_WARNING = _(
    "Keep this sheet outside the venue, and never with the backups: anyone who has both can read "
    "everything the box knows about your guests."
)
_STEPS = (
    _("Take a new machine with venuebox and plug in the drive with the backups."),
    _("Choose the latest backup: its name ends in .venuebox-backup."),
    _("Type: venuebox restore FILE --data DIRECTORY, then the key above."),
    _("Type: venuebox serve --data DIRECTORY. QR codes already sent stay valid."),
)


def kit_text(key: RecoveryKey, venue: str, language: str) -> str:
    """Return the recovery kit as console text: the key in rows, a QR code and instructions."""
    say = load_languages().get(language).plain
    numbered = "\n".join(f"  {number}. {say(step)}" for number, step in enumerate(_STEPS, 1))
    rows = "\n".join(f"    {row}" for row in key_rows(key))
    return (
        f"{say(_TITLE)} · {venue}\n\n{say(_WARNING)}\n\n{say(_KEY)}\n{rows}\n\n"
        f"{qr_blocks(key.text)}\n\n{numbered}"
    )


def kit_html(key: RecoveryKey, venue: str) -> str:
    """Return the kit as a printable, self-contained HTML page in three languages."""
    page = resources.files("appliance.backup").joinpath("kit.html").read_text("utf-8")
    return jinja2.Environment(autoescape=True).from_string(page).render(
        venue=venue, languages=load_languages().all(), rows=key_rows(key),
        code=qr_svg(key.text), title=_TITLE, key=_KEY, warning=_WARNING, steps=_STEPS,
    )  # fmt: skip


def key_rows(key: RecoveryKey) -> list[str]:
    """Return the key as two rows of seven groups, for display."""
    groups = key.text.split("-")
    return [" ".join(groups[:7]), " ".join(groups[7:])]
