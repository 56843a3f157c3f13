"""The backup folder, the retention of backups, and the record of the latest verified backup."""

import contextlib
import re
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from appliance.backup.archive import Header, show_header
from appliance.backup.recovery_key import RecoveryKey, find_recovery_key
from appliance.clock import DAY_MS, HOUR_MS, MINUTE_MS, Clock, parse_instant
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import make_folder, read_json, write_json
from appliance.core.i18n import mark as _
from appliance.core.settings import Settings

SUFFIX = ".venuebox-backup"
_HOURS, _DAYS, _WEEKS, _SCHEMAS, _BOXES = 24, 14, 8, 2, 2
_QUARTER_MS = 15 * MINUTE_MS
OVERDUE_MS = DAY_MS + 6 * HOUR_MS
_NAME = re.compile(
    rf"([a-z0-9-]+)-(?P<stamp>\d{{4}}-\d{{2}}-\d{{2}}T\d{{6}}Z)(-\d+)?{re.escape(SUFFIX)}"
)
_RECORD = "last-backup.json"
_NOT_THERE = _(
    "the backup folder or its volume is not there. Plug it in, or set backup.directory to another "
    "folder."
)
_NUMBERS_PER_BOX = 10_000_000  # enough for a backup every minute for 19 years


@dataclass(frozen=True, slots=True)
class Record:
    """The latest backup. `trouble` is the error of a later attempt that failed, or ""."""

    at: int | None = None  # when a backup was last verified by a trial restore, in ms since 1970
    file: str = ""
    size: int = 0
    reservations: int = 0
    trouble: str = ""
    volume: str = ""  # mount point of the volume that contains the backup
    made_at: int | None = None  # when the latest backup was verified in any way, in ms since 1970
    seconds: float = 0.0  # how long the latest backup took
    mark: str = ""  # the result of `find_mark` for the live database in the backup
    number: int = 0  # the number of the next backup must be greater than this one
    key_check: str = ""  # `RecoveryKey.check` of the key in the printed kit

    @property
    def latest(self) -> int | None:
        """When the latest backup was verified in any way, in ms since 1970."""
        return self.made_at or self.at


def find_catalogue(directory: DataDirectory, settings: Settings) -> Path:
    """Return the backup folder. Raises OperatorError if the folder or its volume is missing.

    Creates the default folder if necessary, but never `backup.directory`. Rejects the empty mount
    point of an unplugged volume.
    """
    if not settings.backup.directory:
        folder = directory.root / "backups"
        make_folder(folder)
        return folder
    folder = Path(settings.backup.directory).expanduser()
    volume = Path(read_record(directory.root).volume or "/")
    if not folder.is_dir() or _is_unmounted(folder.resolve(), volume):
        raise OperatorError(_NOT_THERE)
    return folder


def find_volume(folder: Path) -> Path:
    """Return the mount point of the volume that contains `folder`."""
    path = folder.resolve()
    return next((parent for parent in (path, *path.parents) if parent.is_mount()), Path("/"))


def _is_unmounted(folder: Path, volume: Path) -> bool:
    """Whether `folder` is below the mount point `volume` and nothing is mounted there now."""
    mounted = find_volume(folder)
    return mounted != volume and volume.is_relative_to(mounted) and folder.is_relative_to(volume)


def list_backups(folder: Path, venue_id: str | None = None) -> list[tuple[Path, Header]]:
    """List the backups in `folder`, latest first. Skips other files.

    Lists the backups of one venue, or of all venues if `venue_id` is None.
    """
    found = []
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OperatorError, OSError):
            header = show_header(path)
            if _NAME.fullmatch(path.name) and venue_id in {None, header.venue_id}:
                found.append((path, header))
    return sorted(found, key=lambda backup: backup[1].order, reverse=True)


def slug_of(name: str) -> str:
    """Return the venue's slug in the name of a backup file, or "" for the name of another file."""
    match = _NAME.fullmatch(name)
    return match[1] if match else ""


def time_of(name: str) -> int:
    """Return when the backup with this file name was made, in ms since 1970.

    Returns 0 if this is not the name of a backup.
    """
    match = _NAME.fullmatch(name)
    if not match:
        return 0
    stamp = match["stamp"]
    return parse_instant(f"{stamp[:13]}:{stamp[13:15]}:{stamp[15:]}")


def choose_old(backups: list[tuple[Path, Header]]) -> list[Path]:
    """Return the backups to delete. `backups` must be sorted by `Header.order`, latest first.

    Never returns the latest backup. From the hour before it, keeps one backup for each quarter of
    an hour. From the 24 hours before it, keeps one for each hour. Also keeps one for each of the
    last 14 days, 8 weeks, 2 schema versions and 2 boxes. In each period, the latest backup is kept.
    The backup kept for the previous schema version contains the state before the upgrade. The one
    kept for the previous box may contain bookings that the box that replaced it lacks. Days and
    weeks without a backup are not counted, so a box that was off for a year keeps its backups.
    """
    latest_at = backups[0][1].made_at_ms if backups else 0
    kept: set[Path] = set()
    for count, within, period in (
        (None, HOUR_MS, lambda header: header.made_at_ms // _QUARTER_MS),
        (_HOURS, DAY_MS, lambda header: header.made_at[:13]),
        (_DAYS, None, lambda header: header.made_at[:10]),
        (_WEEKS, None, lambda header: date.fromisoformat(header.made_at[:10]).isocalendar()[:2]),
        (_SCHEMAS, None, lambda header: header.schema),
        (_BOXES, None, lambda header: header.number // _NUMBERS_PER_BOX),
    ):
        latest: dict[object, Path] = {}
        for path, header in backups:
            # If the clock was ahead, an older backup may have a later time. `abs` handles this.
            if within is None or abs(latest_at - header.made_at_ms) < within:
                latest.setdefault(period(header), path)
        kept.update(list(latest.values())[:count])
    return [path for path, _header in backups if path not in kept]


def rotate(made: Path, venue_id: str) -> list[Path]:
    """Delete the venue's old backups in the folder of `made`, and return their paths.

    `made` is the new backup, which is never deleted. Call this only after verifying it.
    """
    old = [path for path in choose_old(list_backups(made.parent, venue_id)) if path != made]
    for path in old:
        path.unlink(missing_ok=True)
    return old


def read_record(root: Path) -> Record:
    """Return the record of the box in `root`, or an empty record if it cannot be read."""
    return read_json(root / _RECORD, Record) or Record()


def write_record(root: Path, record: Record) -> None:
    """Store `record` atomically for the box in `root`."""
    write_json(root / _RECORD, record)


def next_number(directory: DataDirectory, folder: Path, venue_id: str) -> int:
    """Return the number for the box's next backup, which will be stored in `folder`."""
    known = [read_record(directory.root).number]
    for each in {directory.root / "backups", folder}:
        known += [header.number for _path, header in list_backups(each, venue_id)]
    return max(known) + 1


def note_restored(root: Path, restored: Header) -> None:
    """Record in `root` the key of the backup from which the box was restored, and a new number.

    The number is greater than those of all backups that the box made before the restore, because
    this machine may not have all of them.
    """
    record = read_record(root)
    number = (max(record.number, restored.number) // _NUMBERS_PER_BOX + 1) * _NUMBERS_PER_BOX
    key_check = record.key_check or restored.key_check
    write_record(root, replace(record, number=number, key_check=key_check))


def needs_new_kit(directory: DataDirectory) -> bool:
    """Whether the box lost the key in the printed kit, so the kit cannot decrypt new backups.

    Raises OperatorError if the key file is damaged or cannot be read.
    """
    expected, key = read_record(directory.root).key_check, find_recovery_key(directory)
    return bool(expected) and (key is None or key.check != expected)


def record_kit(root: Path, key: RecoveryKey) -> None:
    """Record that the recovery kit with `key` was displayed for printing."""
    record = read_record(root)
    if record.key_check != key.check:
        with contextlib.suppress(OSError):  # ignore a full disk, which an alert already reports
            write_record(root, replace(record, key_check=key.check))


def is_overdue(record: Record, clock: Clock) -> bool:
    """Whether no backup was verified by a trial restore within the last 30 hours."""
    return record.at is None or clock.now() - record.at > OVERDUE_MS
