"""The shelf: the folder in which backups lie, which of them are kept, and the latest proof."""

import contextlib
import json
import re
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from appliance.backup.proof import show_header
from appliance.backup.sealed import Header
from appliance.clock import parse_instant
from appliance.data_directory import DataDirectory
from appliance.durable import atomic_write
from appliance.errors import Trouble
from appliance.file_ownership import make_folder
from appliance.settings import Settings

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


def find_shelf(directory: DataDirectory, settings: Settings) -> Path:
    """Where backups go; Trouble when that is not there: an unplugged volume is never made up.

    Neither where its mount point stays behind, an empty folder of the machine's own disk.
    """
    named = settings.backup.directory
    if not named:
        folder = directory.root / "backups"
        make_folder(folder)
        return folder
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise Trouble(f"{folder} is not there: plug the volume in, or correct backup.directory")
    before = Path(read_record(directory.root).volume or "/")
    if _is_left_behind(folder.resolve(), before):
        raise Trouble(
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
        with contextlib.suppress(Trouble, OSError):
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
