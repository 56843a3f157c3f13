"""The fence: of the boxes with one venue's data, only the one that was restored last serves.

Each restore makes a new installation, with a higher generation than all before it. The serving box
writes its installation into a marker at the backup target, and proves it to other boxes on the
network. A box that finds a later installation than its own does not serve. Markers are encrypted
with a key that is derived from the recovery key.
"""

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from appliance.backup.recovery_key import RecoveryKey
from appliance.backup.targets import open_target
from appliance.clock import format_instant
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, make_folder
from appliance.core.settings import BackupSettings
from appliance.core.tokens import Tokens
from appliance.database.connection import Reader
from appliance.webhooks.deliveries import event_id_of

_FILE = "installation.json"  # in secrets/, so that backups contain it
_PURPOSE = b"venuebox fence"
_AT_TARGET = "marker at the target"  # a context of `seal`
_NONCE_BYTES = 12
_FIRST_GENERATION = 1
_EVENTS_MAX = 1000
_MACHINE_ID = Path("/etc/machine-id")


class Fenced(OperatorError):
    """Raised if another box with the same data was put in this one's place."""


@dataclass(frozen=True, slots=True, order=True)
class Installation:
    """One life of the venue's data. The greatest serves. `since` is in ms since 1970."""

    generation: int
    since: int
    id: str


@dataclass(frozen=True, slots=True)
class Event:
    """An event that the latest copy may lack. `at` is in ms since 1970."""

    seq: int
    type: str
    reservation_id: str | None
    at: int

    @property
    def id(self) -> str:
        """The id that partners receive as `X-Service-Event-Id`."""
        return event_id_of(self.seq, self.type, self.reservation_id, self.at)


@dataclass(frozen=True, slots=True)
class Marker:
    """What a serving box says about itself. `at` is when, in ms since 1970."""

    installation: Installation
    at: int
    addresses: list[str]
    events: list[Event]


@dataclass(frozen=True, slots=True)
class _Stored:
    installation: Installation
    machine: str


def read_installation(root: Path) -> Installation | None:
    """Return the installation of the box in `root`, or None if it has none yet."""
    stored = _read(root)
    return stored.installation if stored else None


def ensure_installation(
    directory: DataDirectory, tokens: Tokens, now: int, machine: str | None = None
) -> Installation:
    """Return the box's installation. Creates it on first use, and renews it on a new machine.

    On another machine, the directory was copied, and the box it was copied from may still run. A
    first installation that cannot be stored lasts until the process ends, because a full disk must
    not keep the box from starting.
    """
    machine = own_machine() if machine is None else machine
    stored = _read(directory.root)
    if stored is None:
        first = Installation(_FIRST_GENERATION, now, tokens.new_id(now))
        with contextlib.suppress(OSError):
            _store(directory.root, first, machine)
        return first
    if machine and stored.machine and stored.machine != machine:
        return renew_installation(directory.root, tokens, now)
    return stored.installation


def renew_installation(
    root: Path, tokens: Tokens, now: int, *others: Installation | None
) -> Installation:
    """Make an installation later than that in `root` and than all `others`, and store it.

    It is also later than that of a box which never stored one, such as one with an older version.
    """
    known = [each.generation for each in (read_installation(root), *others) if each]
    made = Installation(max([_FIRST_GENERATION, *known]) + 1, now, tokens.new_id(now))
    return _store(root, made, own_machine())


def _store(root: Path, installation: Installation, machine: str) -> Installation:
    path = root / "secrets" / _FILE
    make_folder(path.parent)
    atomic_write(path, msgspec.json.encode(_Stored(installation, machine)))
    return installation


def _read(root: Path) -> _Stored | None:
    try:
        return msgspec.json.decode((root / "secrets" / _FILE).read_bytes(), type=_Stored)
    except (OSError, msgspec.DecodeError):
        return None


def own_machine() -> str:
    """Return a hash that identifies this machine, or "" if it has no machine id."""
    try:
        machine = _MACHINE_ID.read_bytes().strip()
    except OSError:
        return ""
    return hashlib.sha256(b"venuebox" + machine).hexdigest()[:32] if machine else ""


def seal(marker: Marker, key: RecoveryKey, context: str = _AT_TARGET) -> bytes:
    """Encrypt a marker. It can be read only with the same key and context, such as a nonce."""
    nonce = os.urandom(_NONCE_BYTES)
    cipher = AESGCM(key.derive(_PURPOSE, b""))
    return nonce + cipher.encrypt(nonce, msgspec.json.encode(marker), context.encode())


def unseal(sealed: bytes, key: RecoveryKey, context: str = _AT_TARGET) -> Marker | None:
    """Return the marker, or None if it was changed or made with another key or context."""
    cipher = AESGCM(key.derive(_PURPOSE, b""))
    with contextlib.suppress(InvalidTag, ValueError, msgspec.DecodeError):
        nonce, content = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        return msgspec.json.decode(cipher.decrypt(nonce, content, context.encode()), type=Marker)
    return None


def marker_name(venue_id: str) -> str:
    """Return the name of the venue's marker at the target."""
    return f"{venue_id}.venuebox-serving"


def refuse_later(own: Installation, others: list[Marker]) -> None:
    """Raise Fenced if one of the `others` is a later installation than `own`."""
    latest = max(others, key=lambda marker: marker.installation, default=None)
    if latest is None or latest.installation <= own:
        return
    where = f" ({', '.join(latest.addresses)})" if latest.addresses else ""
    raise Fenced(
        f"another box{where} took this one's place at {_show(latest.installation.since)} and "
        f"served at {_show(latest.at)}, so this box does not serve. Leave it off. If the other box "
        "is off for good, run venuebox standby take-over to serve again with the data of this one."
    )


def _show(instant: int) -> str:
    return f"{format_instant(instant)[:16].replace('T', ' ')} UTC"


async def exchange(
    settings: BackupSettings, directory: DataDirectory, key: RecoveryKey, venue_id: str,
    marker: Marker,
) -> None:  # fmt: skip
    """Write the marker to the target, unless a later installation's is there.

    Raises Fenced then, and TargetError if the target fails.
    """
    name = marker_name(venue_id)
    async with open_target(settings, directory) as target:
        found = unseal(await target.read_marker(name) or b"", key)
        refuse_later(marker.installation, [found] if found else [])
        await target.write_marker(name, seal(marker, key))


async def find_marker(
    settings: BackupSettings, directory: DataDirectory, key: RecoveryKey, venue_id: str
) -> Marker | None:
    """Return the marker at the target, or None without a readable one.

    Raises TargetError if the target fails.
    """
    async with open_target(settings, directory) as target:
        return unseal(await target.read_marker(marker_name(venue_id)) or b"", key)


def list_events(reader: Reader, after: int) -> list[Event]:
    """List the latest events since `after` (ms since 1970), oldest first, at most 1,000."""
    sql = """SELECT seq, type, reservation_id, occurred_at FROM event
             WHERE occurred_at >= :after ORDER BY seq DESC LIMIT :most"""
    rows = reader.rows(sql, {"after": after, "most": _EVENTS_MAX})
    return [Event(*row) for row in rows][::-1]
