"""Restore a backup: on a new box, or in place of a damaged one."""

from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import apsw

from appliance.backup.archive import Progress, read_header
from appliance.backup.catalogue import list_backups
from appliance.backup.create import scratch_folder
from appliance.backup.recovery_key import RecoveryKey, keep_recovery_key, recovery_key_file
from appliance.backup.verify import Proven, open_backup, unpack_proven
from appliance.clock import Clock, ZoneDatabase, format_instant
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, make_folder, sync
from appliance.core.settings import Settings
from appliance.core.tokens import Tokens
from appliance.database.connection import Reader, open_for_command
from appliance.database.integrity import make_live, session
from appliance.database.migrate import list_migrations
from appliance.staff.accounts import is_closed
from appliance.staff.audit_log import CONSOLE, record_audit

_STAYING = {"settings.toml", "tls", "erasures.jsonl"}  # kept if present: the box's own is newer
_BESIDE = ("-wal", "-shm", "-journal", "-watermark")
# Each database with its side files. live.db comes last: its presence marks the box.
_DATABASES = [f"{name}{more}" for name in ("test.db", "live.db") for more in (*_BESIDE, "")]


def restore_blank(
    file: BinaryIO, key: RecoveryKey, directory: DataDirectory, clock: Clock, zones: ZoneDatabase,
    progress: Progress,
) -> Proven:  # fmt: skip
    """Restore a complete box into a directory without one.

    Raises OperatorError if the backup is unusable or the directory contains a box or parts of
    one, even a stray write-ahead log. A box that was never set up is moved aside. After an
    interruption, run the same command again.
    """
    header, _ = read_header(file)
    if header.schema > list_migrations()[-1][0]:
        raise OperatorError(
            f"this backup was made by venuebox {header.version}, which is newer: use that version"
        )
    directory.make_folders()
    with directory.lock():
        if not (directory.restore_mark.exists() or is_unowned(directory, clock, zones)):
            _refuse_parts(directory)
        with scratch_folder(directory) as folder:
            proven = unpack_proven(file, key, folder, clock, zones, progress)
            _note(folder / "live.db", proven, clock, zones)
            if is_unowned(directory, clock, zones):
                put_unowned_aside(directory, clock)
            atomic_write(directory.restore_mark, b"")
            for name in _DATABASES:  # left by an interrupted restore
                (directory.root / name).unlink(missing_ok=True)
            _place(directory, folder, key)
            return proven


def restore_latest(
    key: RecoveryKey, directory: DataDirectory, shelves: list[Path], clock: Clock,
    zones: ZoneDatabase, progress: Progress,
) -> tuple[Path, Path, Proven]:  # fmt: skip
    """Replace the box's data by its latest good backup. Returns (backup, old data, result).

    The old data is kept in a separate folder; settings and certificates stay. Backups of a newer
    schema are skipped, so this also reverts an upgrade. Raises OperatorError if no backup is good.
    """
    with directory.lock():
        tried, newest = "", list_migrations()[-1][0]
        candidates = [each for shelf in shelves for each in list_backups(shelf)]
        for path, header in sorted(candidates, key=lambda each: each[1].made_at, reverse=True):
            if header.key_check != key.check or header.schema > newest:
                continue
            try:
                with open_backup(path) as file, scratch_folder(directory) as folder:
                    proven = unpack_proven(file, key, folder, clock, zones, progress)
                    _note(folder / "live.db", proven, clock, zones)
                    aside = _move_aside(directory, clock)
                    _place(directory, folder, key)
            except OperatorError as trouble:  # an older one may be good
                tried = f" ({path.name}: {trouble})"
                continue
            return path, aside, proven
    where = ", ".join(map(str, shelves)) or "any folder"
    raise OperatorError(
        f"there is no good backup of this box in {where}{tried}: nothing was changed"
    )


def list_catalogues(directory: DataDirectory, settings: Settings) -> list[Path]:
    """List the existing folders that may contain backups of this box."""
    named = settings.backup.directory
    folders = [directory.root / "backups", *([Path(named).expanduser()] if named else [])]
    return [folder for folder in folders if folder.is_dir()]


def _refuse_parts(directory: DataDirectory) -> None:
    root = directory.root
    if directory.holds_a_box():
        raise OperatorError(f"{root} already holds a box: choose an empty directory, or --latest")
    for name in (*_DATABASES, "secrets/master.key", "settings.toml"):
        if (root / name).exists():
            raise OperatorError(
                f"{root} holds {name} of another box: the two must not be mixed, "
                "so choose an empty directory"
            )


def _move_aside(directory: DataDirectory, clock: Clock) -> Path:
    aside = _make_aside(directory, "damaged", clock)
    atomic_write(directory.restore_mark, b"")
    _move([directory.root / name for name in _DATABASES], aside)
    if directory.master_key_file.exists():
        atomic_write(aside / "master.key", directory.master_key_file.read_bytes())
    return aside


def _make_aside(directory: DataDirectory, what: str, clock: Clock) -> Path:
    aside = directory.root / f"{what}-{format_instant(clock.now())[:19].replace(':', '')}Z"
    make_folder(aside)
    return aside


def _move(files: list[Path], aside: Path) -> None:
    for path in files:
        if path.exists():
            path.replace(aside / path.name)


def _note(database: Path, proven: Proven, clock: Clock, zones: ZoneDatabase) -> None:
    """Record the restore, with the time of the backup, in the audit log."""
    make_live(database)
    with session(database, clock, Tokens(), zones) as tx:
        record_audit(tx, CONSOLE, "restored", made_at=proven.header.made_at)


def _place(directory: DataDirectory, folder: Path, key: RecoveryKey) -> None:
    """Move the restored files into place; remove the restore mark last."""
    for database in ("live.db", "test.db"):
        make_live(folder / database)
        sync(folder / database)
    for part in sorted(folder.rglob("*")):
        name = part.relative_to(folder)
        target = directory.root / name
        is_kept = name.parts[0] in _STAYING and target.exists()
        if part.is_dir() or is_kept or part.name.endswith(_BESIDE):
            continue
        make_folder(target.parent)
        part.replace(target)
        sync(target.parent)
    keep_recovery_key(directory, key)
    directory.restore_mark.unlink()
    sync(directory.root)


def is_unowned(directory: DataDirectory, clock: Clock, zones: ZoneDatabase) -> bool:
    """Whether the box in `directory` still has no owner. The caller holds the lock.

    False if the database cannot be read.
    """
    path = directory.database("live")
    if not (directory.holds_a_box() and path.exists()):
        return False
    try:
        with closing(open_for_command(path)) as connection:
            return is_closed(Reader(connection, clock, zones))
    except (apsw.Error, OperatorError):
        return False


def put_unowned_aside(directory: DataDirectory, clock: Clock) -> None:
    """Move the files of a box without an owner into a separate folder.

    `live.db` moves last: after an interruption the box is still recognised as unowned.
    """
    files = [directory.settings_file, directory.master_key_file, recovery_key_file(directory)]
    files += sorted((directory.root / "tls").glob("*"))
    files += [directory.root / name for name in _DATABASES]
    _move(files, _make_aside(directory, "unused", clock))
