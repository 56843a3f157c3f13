"""The stored backups, their retention, and the trial restore that verifies each."""

import contextlib
import json
import re
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from appliance.backup.archive import (
    Header,
)
from appliance.backup.verify import show_header
from appliance.clock import Clock, parse_instant
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, make_folder
from appliance.core.settings import Settings

SUFFIX = ".venuebox-backup"
DAILY, WEEKLY, SCHEMAS = 14, 8, 2
_NAME = re.compile(rf"[a-z0-9-]+-(\d{{4}}-\d{{2}}-\d{{2}})T\d{{6}}Z(-\d+)?{re.escape(SUFFIX)}")
_RECORD = "last-backup.json"


@dataclass(frozen=True, slots=True)
class Record:
    """The latest verified backup. `trouble` is the error of the latest attempt after it, or ""."""

    at: int | None = None  # when it was verified, in ms since 1970
    file: str = ""
    size: int = 0
    reservations: int = 0
    tried_at: int | None = None
    trouble: str = ""
    volume: str = ""  # mount point of its volume


def find_catalogue(directory: DataDirectory, settings: Settings) -> Path:
    """Return the backup folder. Raises OperatorError if it, or its volume, is not there.

    Never creates `backup.directory`, and rejects the empty mount point of an unplugged volume.
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
    """Return the mount point of the volume that contains `folder`."""
    real = folder.resolve()
    return next((each for each in (real, *real.parents) if each.is_mount()), Path("/"))


def _is_left_behind(folder: Path, before: Path) -> bool:
    """Whether `folder` was on the volume mounted at `before`, which is no longer mounted."""
    now = find_volume(folder)
    return now != before and before.is_relative_to(now) and folder.is_relative_to(before)


def list_backups(shelf: Path, venue_id: str | None = None) -> list[tuple[Path, Header]]:
    """List the backups of this venue, or of all if None, latest first. Skips other files."""
    found = []
    for path in shelf.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OperatorError, OSError):
            header = show_header(path)
            if _NAME.fullmatch(path.name) and venue_id in {None, header.venue_id}:
                found.append((path, header))
    return sorted(found, key=lambda each: parse_instant(each[1].made_at), reverse=True)


def choose_old(backups: list[tuple[Path, Header]]) -> list[Path]:
    """Choose the backups to delete. `backups` is sorted latest first.

    Keeps the latest backup of each of the last 14 days, 8 weeks and 2 schemas that have one;
    the latest of an old schema is the state before an upgrade. Days and weeks without a backup
    do not count, so a box that was off for a year keeps its backups.
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
    """Delete and return this venue's old backups. Call only after a successful `prove`."""
    old = choose_old(list_backups(shelf, venue_id))
    for path in old:
        path.unlink(missing_ok=True)
    return old


def read_record(root: Path) -> Record:
    """Read the record of the latest backup of the box in `root`; empty if unreadable."""
    try:
        return Record(**json.loads((root / _RECORD).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return Record()


def write_record(root: Path, record: Record) -> None:
    """Store the record atomically."""
    atomic_write(root / _RECORD, json.dumps(asdict(record)).encode())


def is_overdue(record: Record, clock: Clock) -> bool:
    """Whether there is no verified backup or the latest is older than 30 hours."""
    return record.at is None or clock.now() - record.at > OVERDUE_MS


DAY_MS = 86_400_000


OVERDUE_MS = DAY_MS + 6 * 3_600_000
