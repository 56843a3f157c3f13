"""The fence: if several boxes have a venue's data, only the box that was restored last may serve.

Each restore in an empty directory creates a new installation, whose generation is higher than that
of all known ones. The serving box writes its installation into a marker at the backup target. It
also sends a marker to other boxes on the network that request it. A box that finds a later
installation than its own does not serve. Markers are encrypted with a key derived from the recovery
key.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from appliance.backup.recovery_key import RecoveryKey
from appliance.backup.targets import MARKER_BYTES, Target, open_target
from appliance.clock import format_instant
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import make_folder, read_json, write_json
from appliance.core.settings import BackupSettings
from appliance.core.tokens import Tokens
from appliance.database.connection import Reader
from appliance.webhooks.deliveries import event_id_of

_FILE = "installation.json"  # also stored in secrets/, so that backups contain it
_PURPOSE = b"venuebox fence"
_AT_TARGET = "marker at the target"  # the `context` of the marker at the target, see `seal`
_NONCE_BYTES = 12
_FIRST_GENERATION = 1
_EVENTS_MAX = 1000
FRESH_MS = 180_000  # a box that wrote its marker in the last 3 min may still serve
_MACHINE_ID = Path("/etc/machine-id")


class Fenced(OperatorError):
    """Raised if another box with the same data serves, or has replaced this one.

    `replaced_by` is the marker of the box that has replaced it, or None if that box still serves.
    """

    def __init__(self, sentence: str, replaced_by: "Marker | None" = None) -> None:
        super().__init__(sentence)
        self.replaced_by = replaced_by


@dataclass(frozen=True, slots=True, order=True)
class Installation:
    """One lifetime of the venue's data, until it is restored elsewhere.

    Only the box with the greatest installation may serve. `since` is in ms since 1970.
    """

    generation: int
    since: int
    id: str


@dataclass(frozen=True, slots=True)
class Event:
    """An event that may be missing from the latest copied backup. `at` is in ms since 1970."""

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
    """A box's report that it serves. `at` is the time of the report, in ms since 1970."""

    installation: Installation
    at: int
    addresses: list[str]
    events: list[Event]


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of `installation.json`. `machine` identifies the machine that created it.

    `confirmed` is False after a restore or a copy of the directory, as long as the original box may
    still be serving. While it is False, `give_way` refuses to let this box serve if another box
    serves. `replaced_by` is the last known marker of a box that has replaced this one, so that this
    box stays fenced when it starts without a network.

    While this box is not confirmed, `heard` is the time in the marker that it last found at the
    target. `heard_at` is when it first found that marker, on the monotonic clock, in seconds.
    """

    installation: Installation
    machine: str
    confirmed: bool = True
    replaced_by: Marker | None = None
    heard: int | None = None
    heard_at: float = 0.0


def read_installation(root: Path) -> Installation | None:
    """Return the installation of the box in `root`, or None if it has none yet."""
    stored = _read(root)
    return stored.installation if stored else None


def ensure_installation(
    directory: DataDirectory, tokens: Tokens, now: int, machine: str | None = None
) -> Stored | None:
    """Return the box's installation. Creates it on first use, and renews it on a new machine.

    On a new machine, the directory is a copy, and the box on the old machine may still be running.
    If the installation cannot be stored, this function returns it nevertheless, so that the box
    starts even if the disk is full.

    Returns None if the files of the installation are damaged. They are not replaced, because a new
    installation would have generation 1. If the box's own marker at the target has a higher
    generation, the box would then mistake this marker for another box's and stop.
    """
    root, machine = directory.root, own_machine() if machine is None else machine
    stored = _read(root)
    if stored is None and any(path.exists() for path in _files(root)):
        return None
    if stored is None:
        stored = Stored(Installation(_FIRST_GENERATION, now, tokens.new_id(now)), machine)
    elif machine and stored.machine and stored.machine != machine:
        later = _later(tokens, now, stored.installation)
        stored = Stored(later, machine, confirmed=False)
    else:
        return stored
    return store_if_possible(root, stored)


def note_marker(
    directory: DataDirectory, stored: Stored, marker: Marker, monotonic: float
) -> tuple[Stored, bool]:
    """Record another box's marker. Returns (new `stored`, whether the other box is silent).

    The other box is silent if its marker at the target has not changed for 3 min. The time in the
    marker does not show the marker's age, because the clock of either box may be wrong. `monotonic`
    is therefore the time in seconds of the monotonic clock, which never steps and restarts only
    when the machine does.
    """
    if stored.heard != marker.at or monotonic < stored.heard_at:
        stored = replace(stored, heard=marker.at, heard_at=monotonic)
        store_if_possible(directory.root, stored)
    return stored, monotonic - stored.heard_at >= FRESH_MS / 1000


def renew_installation(
    root: Path, tokens: Tokens, now: int, *others: Installation | None, confirmed: bool
) -> Installation:
    """Create and store an installation that is later than the one in `root` and all `others`.

    Its generation is at least 2. A box that never stored an installation, such as one with an older
    version, counts as generation 1.
    """
    stored = _read(root)
    own = stored.installation if stored else None
    by = stored.replaced_by.installation if stored and stored.replaced_by else None
    made = _later(tokens, now, own, by, *others)
    _store(root, Stored(made, own_machine(), confirmed))
    return made


def keep_installation(root: Path, restored: Path, tokens: Tokens, now: int) -> None:
    """Store the installation of the box in `root` in `restored` too, with what it knows of others.

    If the box has lost it, creates a later one than that in `restored`, not confirmed.
    """
    stored = _read(root)
    if stored is None:
        renew_installation(restored, tokens, now, confirmed=False)
    else:
        _store(restored, stored)


def _later(tokens: Tokens, now: int, *others: Installation | None) -> Installation:
    known = [each.generation for each in others if each]
    return Installation(max([_FIRST_GENERATION, *known]) + 1, now, tokens.new_id(now))


def _files(root: Path) -> tuple[Path, Path]:
    """Return the two paths at which the installation is stored.

    Backups contain the file in `secrets`, but not the other one.
    """
    return root / "secrets" / _FILE, root / _FILE


def _store(root: Path, stored: Stored) -> None:
    for path in _files(root):
        make_folder(path.parent)
        write_json(path, stored)


def store_if_possible(root: Path, stored: Stored) -> Stored:
    """Store and return `stored`. Ignores errors, such as a full disk."""
    with contextlib.suppress(OSError):
        _store(root, stored)
    return stored


def _read(root: Path) -> Stored | None:
    """Return the stored installation, or None if neither of its two files can be read.

    If the files differ, return the later installation.
    """
    found = filter(None, (read_json(path, Stored) for path in _files(root)))
    return max(found, key=lambda stored: stored.installation, default=None)


def own_machine() -> str:
    """Return a hash that identifies this machine, or "" if it has no machine id."""
    try:
        machine = _MACHINE_ID.read_bytes().strip()
    except OSError:
        return ""
    return hashlib.sha256(b"venuebox" + machine).hexdigest()[:32] if machine else ""


def seal(marker: Marker, key: RecoveryKey, context: str = _AT_TARGET) -> bytes:
    """Encrypt `marker`. To decrypt it, `unseal` needs the same key and `context`."""
    nonce = os.urandom(_NONCE_BYTES)
    cipher = AESGCM(key.derive(_PURPOSE, b""))
    return nonce + cipher.encrypt(nonce, msgspec.json.encode(marker), context.encode())


def unseal(sealed: bytes, key: RecoveryKey, context: str = _AT_TARGET) -> Marker | None:
    """Decrypt a marker.

    Returns None if it is damaged or was encrypted with a different key or context.
    """
    cipher = AESGCM(key.derive(_PURPOSE, b""))
    with contextlib.suppress(InvalidTag, ValueError):
        nonce, content = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        return msgspec.json.decode(cipher.decrypt(nonce, content, context.encode()), type=Marker)
    return None


def marker_name(venue_id: str) -> str:
    """Return the name of the venue's marker at the target."""
    return f"{venue_id}.venuebox-serving"


def give_way(own: Stored, others: list[Marker]) -> None:
    """Raise Fenced if `own` is not confirmed and another box is in `others`, the serving boxes."""
    for marker in others:
        if not own.confirmed and marker.installation != own.installation:
            where = ", ".join(marker.addresses) or "unknown address"
            raise Fenced(
                f"the box that this data came from may still serve ({where}), so this box does not "
                "serve. To replace that box, switch it off. This box then serves if you start it "
                "again three minutes later, or at once after venuebox standby take-over --force."
            )


def refuse_later(own: Installation, others: list[Marker]) -> None:
    """Raise Fenced if a marker in `others` has a later installation than `own`."""
    latest = max(others, key=lambda marker: marker.installation, default=None)
    if latest is None or latest.installation <= own:
        return
    where = f" ({', '.join(latest.addresses)})" if latest.addresses else ""
    raise Fenced(
        f"another box{where} took this one's place at {_show(latest.installation.since)} and "
        f"served at {_show(latest.at)}, so this box does not serve. Leave this box off. If the "
        "other box is off for good, run venuebox standby take-over to serve again with this box's "
        "data.",
        latest,
    )


def _show(instant: int) -> str:
    return f"{format_instant(instant)[:16].replace('T', ' ')} UTC"


async def exchange(
    settings: BackupSettings, directory: DataDirectory, key: RecoveryKey, venue_id: str,
    own: Stored, marker: Marker, is_silent: Callable[[Marker], bool],
) -> None:  # fmt: skip
    """Write the marker to the target, unless this box must not serve (`refuse_later`, `give_way`).

    `is_silent` returns whether the box with the marker at the target no longer serves. It is called
    only if `own` is not confirmed. Raises Fenced if this box must not serve, and TargetError if the
    target fails.
    """
    async with open_target(settings, directory) as target:
        found = await read_marker(target, venue_id, key)
        others = [found] if found else []
        refuse_later(own.installation, others)
        if not own.confirmed:
            give_way(own, [other for other in others if not is_silent(other)])
        await target.write_marker(marker_name(venue_id), seal(marker, key))


async def read_marker(target: Target, venue_id: str, key: RecoveryKey) -> Marker | None:
    """Return the marker at the target, or None if it is missing or cannot be decrypted."""
    return unseal(await target.read(marker_name(venue_id), MARKER_BYTES) or b"", key)


def list_events(reader: Reader, after: int) -> list[Event]:
    """List the latest events since `after` (ms since 1970), oldest first, at most 1,000.

    Always lists the last event. Without that event, a box that was restored from a backup older
    than the latest one could not tell that it lacks events.
    """
    sql = """SELECT seq, type, reservation_id, occurred_at
             FROM (SELECT * FROM event ORDER BY seq DESC LIMIT :most)
             WHERE occurred_at >= :after OR seq = (SELECT max(seq) FROM event)
             ORDER BY seq DESC"""
    rows = reader.rows(sql, {"after": after, "most": _EVENTS_MAX})
    return [Event(*row) for row in rows][::-1]
