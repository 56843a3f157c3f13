"""The backups that are kept, and the trial restore that verifies each."""

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import BinaryIO

from appliance.backup.archive import (
    Header,
    Manifest,
    Progress,
    SealedReader,
    read_header,
    unpack_archive,
)
from appliance.backup.recovery_key import RecoveryKey
from appliance.clock import Clock, ZoneDatabase, parse_instant
from appliance.core.data_directory import ENVIRONMENTS, DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, make_folder
from appliance.core.settings import Settings
from appliance.core.tokens import EnvironmentName, Keyring
from appliance.database.connection import Reader, open_connection
from appliance.database.integrity import count_rows, list_faults
from appliance.database.migrate import list_migrations
from appliance.door.guest_pass import decode_pass
from appliance.door.scan import look_up_code
from appliance.door.signing_keys import get_signing_key, pass_text
from appliance.reservations.rows import find_reservation


@dataclass(frozen=True, slots=True)
class Proven:
    """A backup that was restored whole: its header, what it holds, and how many passes."""

    header: Header
    manifest: Manifest

    @property
    def reservations(self) -> int:
        """How many the live database of the backup has."""
        return self.manifest.rows["live.db"].get("reservation", 0)


def show_header(path: Path) -> Header:
    """What the file says of itself, without any key. OperatorError when it is no backup."""
    with open_backup(path) as file:
        return read_header(file)[0]


def prove(
    file: BinaryIO, key: RecoveryKey, scratch: Path, clock: Clock, zones: ZoneDatabase,
    progress: Progress = lambda _done, _all: None,
) -> Proven:  # fmt: skip
    """Restore the backup below `scratch` and examine it; nothing of it is left there.

    OperatorError when a byte of it is not as it was written, a database is not sound, rows are
    missing, or a guest pass that it makes is not accepted by it.
    """
    with tempfile.TemporaryDirectory(prefix="proof-", dir=scratch) as folder:
        return unpack_proven(file, key, Path(folder), clock, zones, progress)


def unpack_proven(
    file: BinaryIO, key: RecoveryKey, folder: Path, clock: Clock, zones: ZoneDatabase,
    progress: Progress = lambda _done, _all: None,
) -> Proven:  # fmt: skip
    """The same, and leave what was restored in `folder`."""
    sealed = SealedReader(file, key)
    manifest = unpack_archive(sealed, folder, progress)
    master = folder / "secrets" / "master.key"
    if not master.exists():
        raise OperatorError("this backup has no master key: use another one")
    for name in ENVIRONMENTS:
        _prove_database(folder / f"{name}.db", name, manifest, master.read_bytes(), clock, zones)
    return Proven(sealed.header, manifest)


def _prove_database(
    path: Path, name: EnvironmentName, manifest: Manifest, master: bytes, clock: Clock,
    zones: ZoneDatabase,
) -> None:  # fmt: skip
    faults = list_faults(path)
    if faults:
        raise OperatorError(f"{path.name} in this backup is damaged ({faults[0]}): use another one")
    if count_rows(path) != manifest.rows[path.name]:
        raise OperatorError(f"{path.name} in this backup misses rows: use another one")
    with closing(open_connection(path, writable=False)) as connection:
        if int(connection.pragma("user_version")) == list_migrations()[-1][0]:
            _prove_pass(Reader(connection, clock, zones), Keyring(master, name), name)


def _prove_pass(reader: Reader, keyring: Keyring, name: EnvironmentName) -> None:
    """The signing key opens, and the latest reservation's pass is read as ours again."""
    kid, _private_key = get_signing_key(reader, keyring)
    latest = reader.value("SELECT id FROM reservation ORDER BY seq DESC LIMIT 1")
    reservation = None if latest is None else find_reservation(reader, latest)
    if reservation is None:
        return
    text = pass_text(reader, keyring, name, reservation)
    read = decode_pass(text)
    known = reader.value("SELECT public_key FROM signing_key WHERE kid = :kid", {"kid": kid})
    refused = look_up_code(reader, keyring, name, text, by_name=False).refused
    if read is None or not read.is_signed_by(known) or refused:
        raise OperatorError(
            f"the guest passes of this backup ({name}) are not accepted: use another one"
        )


@contextmanager
def open_backup(path: Path) -> Iterator[BinaryIO]:
    """The file, as the medium holds it. OperatorError when it cannot be read."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}") from None
    with file:
        with contextlib.suppress(OSError):  # not what memory remembers
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        yield file


SUFFIX = ".venuebox-backup"
DAILY, WEEKLY, SCHEMAS = 14, 8, 2
_NAME = re.compile(rf"[a-z0-9-]+-(\d{{4}}-\d{{2}}-\d{{2}})T\d{{6}}Z(-\d+)?{re.escape(SUFFIX)}")
_RECORD = "last-backup.json"


@dataclass(frozen=True, slots=True)
class Record:
    """The latest backup that was restored and examined. `trouble` is why none came after it."""

    at: int | None = None  # when it was proven, in ms since 1970
    file: str = ""
    size: int = 0
    reservations: int = 0
    tried_at: int | None = None
    trouble: str = ""
    volume: str = ""  # where the volume that holds it is mounted


def find_catalogue(directory: DataDirectory, settings: Settings) -> Path:
    """Where backups go; OperatorError when that is not there: an unplugged volume is never made up.

    Neither where its mount point stays behind, an empty folder of the machine's own disk.
    """
    named = settings.backup.directory
    if not named:
        folder = directory.root / "backups"
        make_folder(folder)
        return folder
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise OperatorError(
            f"{folder} is not there: plug the volume in, or correct backup.directory"
        )
    before = Path(read_record(directory.root).volume or "/")
    if _is_left_behind(folder.resolve(), before):
        raise OperatorError(
            f"the volume of {folder} is not there: plug it in, or name another folder in "
            "backup.directory"
        )
    return folder


def find_volume(folder: Path) -> Path:
    """Where the volume that holds the folder is mounted."""
    real = folder.resolve()
    return next((each for each in (real, *real.parents) if each.is_mount()), Path("/"))


def _is_left_behind(folder: Path, before: Path) -> bool:
    """Whether the folder, once on the volume mounted at `before`, is now on the one below that."""
    now = find_volume(folder)
    return now != before and before.is_relative_to(now) and folder.is_relative_to(before)


def list_backups(shelf: Path, venue_id: str | None = None) -> list[tuple[Path, Header]]:
    """The backups of this venue, or of any, the latest first; what is no backup is passed over."""
    found = []
    for path in shelf.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OperatorError, OSError):
            header = show_header(path)
            if _NAME.fullmatch(path.name) and venue_id in {None, header.venue_id}:
                found.append((path, header))
    return sorted(found, key=lambda each: parse_instant(each[1].made_at), reverse=True)


def choose_old(backups: list[tuple[Path, Header]]) -> list[Path]:
    """Those that may go: not the last of one of 14 days, one of 8 weeks, or one of 2 schemas.

    The last of a schema is the box as it was before an upgrade. `backups` has the latest
    first. Days and weeks without a backup do not count: a box that was off for a year keeps
    what it had.
    """
    kept: set[Path] = set()
    for most, period in (
        (DAILY, lambda header: header.made_at[:10]),
        (WEEKLY, lambda header: date.fromisoformat(header.made_at[:10]).isocalendar()[:2]),
        (SCHEMAS, lambda header: header.schema),
    ):
        latest: dict[object, Path] = {}
        for path, header in backups:
            latest.setdefault(period(header), path)
        kept.update(list(latest.values())[:most])
    return [path for path, _header in backups if path not in kept]


def rotate(shelf: Path, venue_id: str) -> list[Path]:
    """Delete what is old, of this venue alone; what was deleted. Call it after a proof only."""
    old = choose_old(list_backups(shelf, venue_id))
    for path in old:
        path.unlink(missing_ok=True)
    return old


def read_record(root: Path) -> Record:
    """What is known of the latest backup of the box in `root`."""
    try:
        return Record(**json.loads((root / _RECORD).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return Record()


def write_record(root: Path, record: Record) -> None:
    """Remember it."""
    atomic_write(root / _RECORD, json.dumps(asdict(record)).encode())


def is_overdue(record: Record, clock: Clock) -> bool:
    """Whether the latest proven backup is older than a night and some hours, or there is none."""
    return record.at is None or clock.now() - record.at > _OVERDUE_MS


DAY_MS = 86_400_000


_OVERDUE_MS = DAY_MS + 6 * 3_600_000
