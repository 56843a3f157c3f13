"""The recovery key, which decrypts every backup of a box, and the printable recovery kit.

The key is an age identity (https://age-encryption.org), so `age` too decrypts the backups.
"""

from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from appliance.backup.catalogue import read_record
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, exclusive, make_folder
from appliance.core.i18n import load_languages
from appliance.core.i18n import mark as _
from appliance.core.qr import qr_svg

if TYPE_CHECKING:
    from pyrage import x25519

_PREFIX = "AGE-SECRET-KEY-1"
_PREFIX_START, _PREFIX_LETTERS = "AGESECRETKEY", 13
LETTERS = 58  # after the prefix
_GROUP, _ROW = 4, 32
# Letters that the key cannot contain after its prefix, and the ones that they are misread for.
_LOOKALIKES = str.maketrans({"1": "L", "I": "L", "O": "0", "B": "8"})
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class RecoveryKey:
    """The secret that the recovery kit shows. `text` is a valid age identity."""

    text: str = field(repr=False)

    @property
    def identity(self) -> "x25519.Identity":
        """The identity that decrypts backups."""
        from pyrage import x25519  # noqa: PLC0415 - a box that makes no backup does not need it

        return x25519.Identity.from_str(self.text)

    @property
    def rows(self) -> list[str]:
        """The key in three rows, as it is printed."""
        letters = self.text.removeprefix(_PREFIX)
        rows = (letters[at : at + _ROW] for at in range(0, LETTERS, _ROW))
        return [_PREFIX, *(_in_groups(row) for row in rows)]


def _in_groups(row: str) -> str:
    return " ".join(row[at : at + _GROUP] for at in range(0, len(row), _GROUP))


def parse_recovery_key(text: str) -> RecoveryKey:
    """Parse a typed or scanned key. Raises OperatorError if its length or checksum is wrong."""
    from pyrage import IdentityError, x25519  # noqa: PLC0415 - see above

    letters = find_letters(text)
    if len(letters) != LETTERS:
        raise OperatorError(
            f"the recovery key has {LETTERS} letters and digits after {_PREFIX}, but "
            f"{len(letters)} were typed. Type it as the recovery kit shows it."
        )
    key = _PREFIX + letters.translate(_LOOKALIKES)
    try:
        x25519.Identity.from_str(key)
    except IdentityError:
        raise OperatorError(
            "the recovery key contains a typing error. Compare it with the recovery kit."
        ) from None
    return RecoveryKey(key)


def find_letters(text: str) -> str:
    """Return the letters and digits of a typed key, without its prefix."""
    letters = "".join(c for c in text.upper() if c.isalnum())
    return letters[_PREFIX_LETTERS:] if letters.startswith(_PREFIX_START) else letters


def recovery_key_file(directory: DataDirectory) -> Path:
    """Return the path of the recovery key. `age -d -i` takes this file."""
    return directory.root / "secrets" / "recovery.key"


def find_recovery_key(directory: DataDirectory) -> RecoveryKey | None:
    """Return the box's recovery key, or None if it has none.

    Raises OperatorError if the file is damaged or cannot be read.
    """
    path = recovery_key_file(directory)
    try:
        return parse_recovery_key(path.read_text("ascii"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OperatorError(
            f"{path} cannot be read ({error.strerror}). Run this command as the file's owner."
        ) from None
    except (OperatorError, ValueError):
        raise OperatorError(f"{path} is damaged. {_REPAIR}") from None


_REPAIR = (
    "Write the key of the printed recovery kit into it, or make a new key and print a new kit "
    "with venuebox backup kit --new."
)


def ensure_recovery_key(directory: DataDirectory) -> RecoveryKey:
    """Return the box's recovery key, and create it before the first backup.

    Several processes may call it at the same time. Raises OperatorError if the key file is lost,
    damaged or cannot be read, or if another process locks its folder for more than 30 s.
    """
    folder = recovery_key_file(directory).parent
    make_folder(folder)
    with exclusive(
        folder, _PATIENCE_SECONDS, "another process is creating the recovery key. Try again."
    ):
        key = find_recovery_key(directory)
        if key is None and read_record(directory.root).latest is not None:
            # A new key would decrypt no backup that was made before, and no printed kit shows it.
            raise OperatorError(f"{recovery_key_file(directory)} is missing. {_REPAIR}")
        return key or create_recovery_key(directory)


def create_recovery_key(directory: DataDirectory) -> RecoveryKey:
    """Create a key and store it as the box's recovery key."""
    from pyrage import x25519  # noqa: PLC0415 - see above

    return keep_recovery_key(directory, RecoveryKey(str(x25519.Identity.generate())))


def keep_recovery_key(directory: DataDirectory, key: RecoveryKey) -> RecoveryKey:
    """Store `key` as the box's recovery key and return it."""
    path = recovery_key_file(directory)
    make_folder(path.parent)
    atomic_write(path, f"{key.text}\n".encode())
    return key


_TITLE, _KEY = _("Recovery kit"), _("Recovery key")
_WARNING = _(
    "Keep this sheet outside the venue, and never with the backups: anyone who has both can read "
    "everything the box knows about your guests."
)
_RESTORE = "sudo ./venuebox restore {source} --data /srv/venuebox"
# Sentences of the kit, each with the command that it explains, or with "".
_STEPS = (
    (
        _("Take a new machine with Linux. Plug in the drive with the backups and copy the program "
          "venuebox to the machine."),
        "chmod +x venuebox",
    ),
    (
        _("Restore the latest backup, and type the key above when you are asked for it. FILE is "
          "the backup with the highest number; its name ends in .tar.age."),
        _RESTORE.format(source="FILE"),
    ),
    (
        _("Start the box, now and each time the machine starts. QR codes already sent stay valid."),
        "sudo ./venuebox service install --data /srv/venuebox",
    ),
)  # fmt: skip
_ELSEWHERE = _("Or restore the latest copy that the box made elsewhere.")
_WITHOUT = (
    _("Without venuebox, the program age opens a backup. Write the key into the file KEY, in one "
      "line and without spaces."),
    "age -d -i KEY FILE | tar x",
)  # fmt: skip


def _steps(target: str) -> list[tuple[str, str]]:
    elsewhere = [(_ELSEWHERE, _RESTORE.format(source=f"--from {target}"))] if target else []
    return [*_STEPS[:2], *elsewhere, *_STEPS[2:], _WITHOUT]


def kit_html(key: RecoveryKey, venue: str, target: str) -> str:
    """Return the kit as a printable, self-contained HTML page in three languages."""
    page = resources.files("appliance.backup").joinpath("kit.html").read_text("utf-8")
    return jinja2.Environment(autoescape=True).from_string(page).render(
        venue=venue, languages=load_languages().all(), rows=key.rows,
        code=qr_svg(key.text), title=_TITLE, key=_KEY, warning=_WARNING, steps=_steps(target),
    )  # fmt: skip
