"""What the room says of the backups: the last one that was proven, and how many are kept."""

from dataclasses import dataclass
from pathlib import Path

from appliance.backup.shelf import Record, find_shelf, list_backups, read_record
from appliance.data_directory import DataDirectory
from appliance.errors import Trouble
from appliance.settings import Settings


@dataclass(frozen=True, slots=True)
class Shelf:
    """`folder` is None where it is not there; `count` is of backups of this venue."""

    record: Record
    folder: Path | None
    count: int


def look_at_shelf(directory: DataDirectory, settings: Settings, venue_id: str) -> Shelf:
    """Reads the heads of the files: not for the loop."""
    record = read_record(directory.root)
    try:
        folder = find_shelf(directory, settings)
        return Shelf(record, folder, len(list_backups(folder, venue_id)))
    except (Trouble, OSError):
        return Shelf(record, None, 0)
