"""A box that was started and never set up: it holds nothing, and makes way for a backup."""

from contextlib import closing
from pathlib import Path

import apsw

from appliance.backup.recovery_key import recovery_key_file
from appliance.clock import Clock, ZoneDatabase, format_instant
from appliance.data_directory import DataDirectory
from appliance.errors import Trouble
from appliance.file_ownership import make_folder
from appliance.store.connection import Reader, open_for_command
from appliance.store.setup import is_closed

_BESIDE = ("", "-wal", "-shm", "-journal", "-watermark")


def is_unowned(directory: DataDirectory, clock: Clock, zones: ZoneDatabase) -> bool:
    """Whether the box in `directory` still waits for its first owner; the caller holds the lock.

    One that cannot be read is not.
    """
    path = directory.database("live")
    if not (directory.holds_a_box() and path.exists()):
        return False
    try:
        with closing(open_for_command(path)) as connection:
            return is_closed(Reader(connection, clock, zones))
    except (apsw.Error, Trouble):
        return False


def put_unowned_aside(directory: DataDirectory, clock: Clock) -> Path:
    """Move what would be mixed with another box's into a folder of its own; that folder.

    `live.db` goes last: interrupted before that, it is still known as unowned.
    """
    aside = directory.root / f"unused-{format_instant(clock.now())[:19].replace(':', '')}Z"
    make_folder(aside)
    files = [directory.settings_file, directory.master_key_file, recovery_key_file(directory)]
    files += sorted((directory.root / "tls").glob("*"))
    for name in ("test.db", "live.db"):
        files += [directory.root / f"{name}{more}" for more in reversed(_BESIDE)]
    for path in files:
        if path.exists():
            path.replace(aside / path.name)
    return aside
