"""The names of backups, the backup folder, the retention, and the record of the latest backup.

A name says all that is needed to order and to delete backups: `riad-atlas-000123-` (the venue's
slug, and a number because the box's clock may be wrong), `2026-11-21T040012Z-` (when it was made)
and `3f9c21.tar.age` (which venue, because its slug may change).
"""

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from appliance.clock import DAY_MS, HOUR_MS, Clock, format_instant
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import make_folder, read_json, write_json
from appliance.core.i18n import mark as _
from appliance.core.settings import Settings

SUFFIX = ".tar.age"
OVERDUE_MS = DAY_MS + 6 * HOUR_MS
_NAME = re.compile(
    rf"(?P<slug>[a-z0-9-]+)-(?P<number>\d{{6,12}})-(?P<made>\d{{4}}-\d{{2}}-\d{{2}}T\d{{6}})Z"
    rf"-(?P<venue>[0-9a-f]{{6}}){re.escape(SUFFIX)}"
)
_RECORD = "last-backup.json"
_NOT_THERE = _(
    "the backup folder or its volume is not there. Plug it in, or set backup.directory to another "
    "folder."
)
# More than a box makes in a month. A restored box skips this many, because the machine that it
# replaces may have made backups that it does not know.
_NUMBERS_PER_BOX = 10_000


@dataclass(frozen=True, slots=True)
class Backup:
    """What the name of a backup says about it."""

    name: str
    slug: str
    number: int
    made: str  # 2026-11-21T040012, in UTC
    venue: str  # `venue_tag` of the venue's id

    @property
    def order(self) -> tuple[int, str]:
        """The sort key. Of two backups of a venue, the later one has the greater key."""
        return self.number, self.made


def parse_name(name: str) -> Backup | None:
    """Return what the file name says, or None if it is not the name of a backup."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    try:
        date.fromisoformat(match["made"][:10])
    except ValueError:
        return None
    return Backup(name, match["slug"], int(match["number"]), match["made"], match["venue"])


def make_name(slug: str, number: int, made_at: int, venue_id: str) -> str:
    """Return the name of a backup made at `made_at`, in ms since 1970."""
    made = format_instant(made_at)[:19].replace(":", "")
    return f"{slug}-{number:06}-{made}Z-{venue_tag(venue_id)}{SUFFIX}"


def venue_tag(venue_id: str) -> str:
    """Return the six hexadecimal digits that stand for the venue in names of backups."""
    return hashlib.sha256(venue_id.encode()).hexdigest()[:6]


def sort_names(names: Iterable[str]) -> list[Backup]:
    """Return the backups among the files `names`, latest first."""
    backups = [backup for name in names if (backup := parse_name(name))]
    return sorted(backups, key=lambda backup: backup.order, reverse=True)


def list_backups(folder: Path) -> list[Path]:
    """Return the paths of the backups in `folder`, latest first."""
    return [folder / each.name for each in sort_names(path.name for path in folder.iterdir())]


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
    digest: str = ""  # the result of `find_digest` for the live database in the backup
    number: int = 0  # the number of the next backup must be greater than this one

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


# How many backups are kept for each kind of period: the latest ones, and the last one of each hour,
# day and week. Periods without a backup are not counted, so a box that was off keeps its backups.
_KEPT: tuple[tuple[int, Callable[[Backup], object]], ...] = (
    (4, lambda backup: backup.number),
    (24, lambda backup: backup.made[:13]),
    (14, lambda backup: backup.made[:10]),
    (8, lambda backup: date.fromisoformat(backup.made[:10]).isocalendar()[:2]),
)


def choose_old(names: Iterable[str], made: str) -> list[str]:
    """Return the backups to delete among the files `names`.

    `made` is the name of a backup that was just made. It and backups of other venues are kept.
    """
    new = parse_name(made)
    backups = [each for each in sort_names(names) if new and each.venue == new.venue]
    kept = {made}
    for count, period in _KEPT:
        last: dict[object, str] = {}
        for backup in backups:
            last.setdefault(period(backup), backup.name)
        kept.update(list(last.values())[:count])
    return [backup.name for backup in backups if backup.name not in kept]


def rotate(made: Path) -> None:
    """Delete old backups in the folder of the new backup `made`. Call it once `made` is verified.

    Backups of other venues are kept.
    """
    for name in choose_old((path.name for path in made.parent.iterdir()), made.name):
        made.with_name(name).unlink(missing_ok=True)


def read_record(root: Path) -> Record:
    """Return the record of the box in `root`, or an empty record if it cannot be read."""
    return read_json(root / _RECORD, Record) or Record()


def write_record(root: Path, record: Record) -> None:
    """Store `record` atomically for the box in `root`."""
    write_json(root / _RECORD, record)


def next_number(directory: DataDirectory, folder: Path) -> int:
    """Return the number for the box's next backup, which will be stored in `folder`."""
    known = [read_record(directory.root).number]
    for each in {directory.root / "backups", folder}:
        if each.is_dir():
            known += [backup.number for backup in sort_names(path.name for path in each.iterdir())]
    return max(known) + 1


def note_restored(root: Path, number: int) -> None:
    """Record in `root` that the box was restored from the backup with this number."""
    record = read_record(root)
    number = max(record.number, number) + _NUMBERS_PER_BOX
    write_record(root, replace(record, number=number))


def is_overdue(record: Record, clock: Clock) -> bool:
    """Whether no backup was verified by a trial restore within the last 30 hours."""
    return record.at is None or clock.now() - record.at > OVERDUE_MS
