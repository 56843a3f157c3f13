"""The backup folder, the retention of backups, and the record of the latest verified backup."""

import contextlib
import json
import re
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from appliance.backup.archive import Header, show_header
from appliance.clock import Clock, parse_instant
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, make_folder
from appliance.core.settings import Settings

SUFFIX = ".venuebox-backup"
_HOURS, _DAYS, _WEEKS, _SCHEMAS = 24, 14, 8, 2
_QUARTER_MS, HOUR_MS, DAY_MS = 900_000, 3_600_000, 86_400_000
OVERDUE_MS = DAY_MS + 6 * HOUR_MS
_NAME = re.compile(rf"([a-z0-9-]+)-\d{{4}}-\d{{2}}-\d{{2}}T\d{{6}}Z(-\d+)?{re.escape(SUFFIX)}")
_RECORD = "last-backup.json"


@dataclass(frozen=True, slots=True)
class Record:
    """The latest backup. `trouble` is the error if a later attempt failed, or ""."""

    at: int | None = None  # when one was last verified by a trial restore, in ms since 1970
    file: str = ""
    size: int = 0
    reservations: int = 0
    tried_at: int | None = None  # when the latest attempt ended, in ms since 1970
    trouble: str = ""
    volume: str = ""  # mount point of the volume that contains the backup
    made_at: int | None = None  # when the latest one was verified in any way, in ms since 1970
    seconds: float = 0.0  # how long the latest one took
    mark: str = ""  # the state of the live database in it, as `find_mark` returns it

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
    if not folder.is_dir():
        raise OperatorError(
            f"{folder} does not exist. Plug the volume in, or correct backup.directory."
        )
    volume = Path(read_record(directory.root).volume or "/")
    if _is_unmounted(folder.resolve(), volume):
        raise OperatorError(
            f"the volume of {folder} is not mounted. Plug it in, or set backup.directory to a "
            "different folder."
        )
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
    return sorted(found, key=lambda backup: parse_instant(backup[1].made_at), reverse=True)


def slug_of(name: str) -> str:
    """Return the venue's slug in the name of a backup file, or "" if the name is another one."""
    match = _NAME.fullmatch(name)
    return match[1] if match else ""


def choose_old(backups: list[tuple[Path, Header]]) -> list[Path]:
    """Return the backups to delete. `backups` must be sorted, latest first.

    Keeps the latest backup of each quarter of the hour before the latest one, of each of the 24
    hours before it, and of the last 14 days, 8 weeks and 2 schema versions. The latest backup with
    the previous schema contains the state before an upgrade. Days and weeks without a backup do not
    count, so a box that was off for a year keeps its backups. A box that restarts again and again
    before an upgrade fills no disk.
    """
    made = {path: parse_instant(header.made_at) for path, header in backups}
    latest_at = max(made.values(), default=0)
    kept: set[Path] = set()
    for count, within, period in (
        (None, HOUR_MS, lambda header: parse_instant(header.made_at) // _QUARTER_MS),
        (_HOURS, DAY_MS, lambda header: header.made_at[:13]),
        (_DAYS, None, lambda header: header.made_at[:10]),
        (_WEEKS, None, lambda header: date.fromisoformat(header.made_at[:10]).isocalendar()[:2]),
        (_SCHEMAS, None, lambda header: header.schema),
    ):
        latest: dict[object, Path] = {}
        for path, header in backups:
            if within is None or latest_at - made[path] < within:
                latest.setdefault(period(header), path)
        kept.update(list(latest.values())[:count])
    return [path for path, _header in backups if path not in kept]


def rotate(folder: Path, venue_id: str) -> list[Path]:
    """Delete the venue's old backups and return their paths.

    Call it only after `prove` succeeded.
    """
    old = choose_old(list_backups(folder, venue_id))
    for path in old:
        path.unlink(missing_ok=True)
    return old


def read_record(root: Path) -> Record:
    """Return the record of the box in `root`, or an empty record if it cannot be read."""
    try:
        return Record(**json.loads((root / _RECORD).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return Record()


def write_record(root: Path, record: Record) -> None:
    """Store `record` atomically for the box in `root`."""
    atomic_write(root / _RECORD, json.dumps(asdict(record)).encode())


def is_overdue(record: Record, clock: Clock) -> bool:
    """Whether there is no verified backup, or the latest is older than 30 hours."""
    return record.at is None or clock.now() - record.at > OVERDUE_MS
