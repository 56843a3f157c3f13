"""Verify a backup by a trial restore, and restore a backup on a new or damaged box."""

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO

import apsw

from appliance.backup import archive, catalogue
from appliance.backup.recovery_key import RecoveryKey, keep_recovery_key, recovery_key_file
from appliance.clock import Clock, ZoneDatabase, format_instant
from appliance.core.data_directory import ENVIRONMENTS, DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, make_folder, require_space, sync
from appliance.core.settings import Settings
from appliance.core.tokens import EnvironmentName, Keyring, Tokens
from appliance.database.connection import Reader, open_connection, open_for_command
from appliance.database.integrity import count_rows, list_faults, make_live, session
from appliance.database.migrate import newest_schema
from appliance.door.guest_pass import decode_pass, get_signing_key, pass_text
from appliance.door.scan import look_up_code
from appliance.reservations.rows import find_reservation
from appliance.staff.accounts import is_closed
from appliance.staff.audit_log import CONSOLE, record_audit

BOOKINGS_BYTES = 16 << 20  # larger than the amount that bookings add to the WAL during a backup


def prove(
    file: BinaryIO, key: RecoveryKey, scratch: Path, clock: Clock, zones: ZoneDatabase,
    progress: archive.Progress = lambda _done, _all: None,
) -> archive.Manifest:  # fmt: skip
    """Verify the backup by restoring it to a temporary folder in `scratch`.

    Raises OperatorError if the file is unusable (see `read_archive`), if a database is corrupt, if
    rows are missing, or if a guest pass signed with the restored keys is not accepted.
    """
    with tempfile.TemporaryDirectory(prefix="proof-", dir=scratch) as folder:
        return unpack_proven(file, key, Path(folder), clock, zones, progress)


def unpack_proven(
    file: BinaryIO, key: RecoveryKey, folder: Path, clock: Clock, zones: ZoneDatabase,
    progress: archive.Progress = lambda _done, _all: None,
) -> archive.Manifest:  # fmt: skip
    """Verify the backup as `prove` does, and leave the restored files in `folder`.

    Raises OperatorError for the same reasons as `prove`.
    """
    manifest = archive.read_archive(file, key, folder, progress, newest_schema())
    master = (folder / "secrets" / "master.key").read_bytes()
    for name in ENVIRONMENTS:
        _prove_database(folder / f"{name}.db", name, manifest, master, clock, zones)
    return manifest


def check_copies(
    file: BinaryIO, key: RecoveryKey, copies: dict[EnvironmentName, Path], master: bytes,
    clock: Clock, zones: ZoneDatabase, progress: archive.Progress,
) -> None:  # fmt: skip
    """Verify the backup like `prove`, but without writing to the disk, to spare SD cards.

    Reads the whole backup, which age authenticates. Instead of restored databases, checks `copies`,
    the database files that the backup was made from. Raises OperatorError for the same reasons as
    `prove`.
    """
    manifest = archive.read_archive(file, key, None, progress, newest_schema())
    for name, copy in copies.items():
        _prove_database(copy, name, manifest, master, clock, zones)


def _prove_database(
    path: Path, name: EnvironmentName, manifest: archive.Manifest, master: bytes, clock: Clock,
    zones: ZoneDatabase,
) -> None:  # fmt: skip
    _refuse_faults(path)
    if count_rows(path) != manifest.rows.get(path.name):
        raise OperatorError(f"{path.name} in this backup lacks rows. Use a different backup.")
    with closing(open_connection(path, writable=False)) as connection:
        if int(connection.pragma("user_version")) == newest_schema():
            _prove_pass(Reader(connection, clock, zones), Keyring(master, name), name)


def _refuse_faults(path: Path) -> None:
    faults = list_faults(path)
    if faults:
        raise OperatorError(
            f"{path.name} in this backup is damaged ({faults[0]}). Use a different backup."
        )


def _prove_pass(reader: Reader, keyring: Keyring, name: EnvironmentName) -> None:
    """Check that the signing key can be decrypted and the latest reservation's pass is accepted."""
    kid, _private_key = get_signing_key(reader, keyring)
    latest = reader.value("SELECT id FROM reservation ORDER BY seq DESC LIMIT 1")
    reservation = None if latest is None else find_reservation(reader, latest)
    if reservation is None:
        return
    text = pass_text(reader, keyring, name, reservation)
    guest_pass = decode_pass(text)
    public_key = reader.value("SELECT public_key FROM signing_key WHERE kid = :kid", {"kid": kid})
    refused = look_up_code(reader, keyring, name, text, by_name=False).refused
    if guest_pass is None or not guest_pass.is_signed_by(public_key) or refused:
        raise OperatorError(
            f"the {name} guest passes in this backup were not signed with its keys. Use another "
            "backup."
        )


@contextmanager
def scratch_folder(directory: DataDirectory) -> Iterator[Path]:
    """Yield a private temporary folder in the data directory.

    The folder is deleted at the end of the block or, after a crash, by the next `serve`.
    """
    make_folder(directory.tmp)
    with tempfile.TemporaryDirectory(
        prefix="backup-", dir=directory.tmp, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


def require_room(directory: DataDirectory, size: int, failure: str) -> None:
    """Raise OperatorError if `size` bytes of temporary files leave too little space for bookings.

    The message begins with `failure`. On a full disk, the box could not store bookings.
    """
    require_space(directory.root, size + BOOKINGS_BYTES, failure)


# Files that are not restored if the box already has them, because the box's are newer.
_NOT_REPLACED = {"settings.toml", "tls", "erasures.jsonl"}
_SIDE_FILES = ("-wal", "-shm", "-journal")
# The databases and their side files. live.db comes last, because `is_unowned` needs it to repeat an
# interrupted move.
_DATABASES = [f"{name}{more}" for name in ("test.db", "live.db") for more in (*_SIDE_FILES, "")]


def restore_blank(
    file: BinaryIO, key: RecoveryKey, directory: DataDirectory, clock: Clock, zones: ZoneDatabase,
    progress: archive.Progress,
) -> archive.Manifest:  # fmt: skip
    """Restore a complete box from the backup into a directory without a box.

    If the directory contains a box that was never set up, its files are moved to another folder. An
    interrupted restore can be run again. Raises OperatorError if the backup is unusable, or if the
    directory contains any other box or some of a box's files, such as a write-ahead log.
    """
    directory.make_folders()
    with directory.lock():
        if not (directory.restore_mark.exists() or is_unowned(directory, clock, zones)):
            _refuse_parts(directory)
        with scratch_folder(directory) as scratch:
            manifest = unpack_proven(file, key, scratch, clock, zones, progress)
            _record_restore(scratch, manifest, clock, zones)
            if is_unowned(directory, clock, zones):
                put_unowned_aside(directory, clock)
            atomic_write(directory.restore_mark, b"")
            for name in _DATABASES:  # an interrupted restore may have left these files
                (directory.root / name).unlink(missing_ok=True)
            _place(directory, scratch, key, manifest)
            return manifest


def restore_latest(
    key: RecoveryKey, directory: DataDirectory, folders: list[Path], clock: Clock,
    zones: ZoneDatabase, progress: archive.Progress,
) -> tuple[Path, Path, archive.Manifest, bool]:  # fmt: skip
    """Replace the box's data with the latest good backup in `folders`.

    Returns (path of the backup, folder with the old data, its manifest, whether live.db was kept).
    It is kept if only test.db is damaged. Settings and certificates are kept too. Backups for
    another key are skipped, and those with a newer schema than this program's, so an older program
    can revert an upgrade. Raises OperatorError if there is no good backup.
    """
    with directory.lock():
        keeps_live = not _is_damaged(directory, "live") and _is_damaged(directory, "test")
        paths = {path.name: path for folder in folders for path in catalogue.list_backups(folder)}
        failure = ""
        for path in (paths[backup.name] for backup in catalogue.sort_names(paths)):
            try:
                with archive.open_backup(path) as file, scratch_folder(directory) as scratch:
                    manifest = unpack_proven(file, key, scratch, clock, zones, progress)
                    kept = keeps_live and _has_same_keys(directory, scratch)
                    if kept:
                        aside = _replace_sandbox(directory, scratch, clock)
                    else:
                        _record_restore(scratch, manifest, clock, zones)
                        aside = _move_aside(directory, clock)
                        _place(directory, scratch, key, manifest)
            except OperatorError as error:  # try the next older backup
                failure = failure or f" ({path.name}: {error})"
                continue
            return path, aside, manifest, kept
    where = ", ".join(map(str, folders)) or "any folder"
    raise OperatorError(
        f"there is no good backup of this box in {where}{failure}. Nothing was changed."
    )


def _is_damaged(directory: DataDirectory, name: EnvironmentName) -> bool:
    """Whether the database is missing or damaged, or an earlier restore was interrupted."""
    path = directory.database(name)
    return directory.restore_mark.exists() or not path.exists() or bool(list_faults(path))


def _has_same_keys(directory: DataDirectory, scratch: Path) -> bool:
    key = directory.master_key_file
    restored = scratch / key.relative_to(directory.root)
    return key.exists() and key.read_bytes() == restored.read_bytes()


def _replace_sandbox(directory: DataDirectory, scratch: Path, clock: Clock) -> Path:
    aside = _make_aside(directory, "damaged", clock)
    sandbox = [name for name in _DATABASES if name.startswith("test.db")]
    _move([directory.root / name for name in sandbox], aside)
    make_live(scratch / "test.db")
    sync(scratch / "test.db")
    (scratch / "test.db").replace(directory.database("test"))
    sync(directory.root)
    return aside


def list_catalogues(directory: DataDirectory, settings: Settings) -> list[Path]:
    """List the existing folders that may contain backups of this box."""
    folders = [directory.root / "backups"]
    if settings.backup.directory:
        folders.append(Path(settings.backup.directory).expanduser())
    return [folder for folder in folders if folder.is_dir()]


def _refuse_parts(directory: DataDirectory) -> None:
    root = directory.root
    if directory.holds_a_box():
        raise OperatorError(
            f"{root} already contains a box. Choose an empty directory, or use --latest."
        )
    for name in (*_DATABASES, "secrets/master.key", "settings.toml"):
        if (root / name).exists():
            raise OperatorError(
                f"{root} contains {name} from another box. Files of two boxes must not be mixed. "
                "Choose an empty directory."
            )


def _move_aside(directory: DataDirectory, clock: Clock) -> Path:
    aside = _make_aside(directory, "damaged", clock)
    atomic_write(directory.restore_mark, b"")
    _move([directory.root / name for name in _DATABASES], aside)
    if directory.master_key_file.exists():
        atomic_write(aside / "master.key", directory.master_key_file.read_bytes())
    return aside


def _make_aside(directory: DataDirectory, prefix: str, clock: Clock) -> Path:
    aside = directory.root / f"{prefix}-{format_instant(clock.now())[:19].replace(':', '')}Z"
    make_folder(aside)
    return aside


def _move(files: list[Path], aside: Path) -> None:
    for path in files:
        if path.exists():
            path.replace(aside / path.name)


def _record_restore(
    scratch: Path, manifest: archive.Manifest, clock: Clock, zones: ZoneDatabase
) -> None:
    """Record the restore in the audit log in `scratch`."""
    make_live(scratch / "live.db")
    with session(scratch / "live.db", clock, Tokens(), zones) as tx:
        record_audit(tx, CONSOLE, "restored", made_at=manifest.made_at)


def _place(
    directory: DataDirectory, scratch: Path, key: RecoveryKey, manifest: archive.Manifest
) -> None:
    """Move the restored files from `scratch` into place, and remove the restore mark last."""
    for database in ("live.db", "test.db"):
        make_live(scratch / database)
        sync(scratch / database)
    for path in sorted(scratch.rglob("*")):
        name = path.relative_to(scratch)
        target = directory.root / name
        is_kept = name.parts[0] in _NOT_REPLACED and target.exists()
        if path.is_dir() or is_kept or path.name.endswith(_SIDE_FILES):
            continue
        make_folder(target.parent)
        path.replace(target)
        sync(target.parent)
    keep_recovery_key(directory, key)
    catalogue.note_restored(directory.root, manifest.number)
    directory.restore_mark.unlink()
    sync(directory.root)


def is_unowned(directory: DataDirectory, clock: Clock, zones: ZoneDatabase) -> bool:
    """Whether `directory` contains a box that has no owner yet. Call it with the lock held.

    Returns False if the database cannot be read.
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

    `live.db` is moved last, so that an interrupted move can be repeated.
    """
    files = [directory.settings_file, directory.master_key_file, recovery_key_file(directory)]
    files += sorted((directory.root / "tls").glob("*"))
    files += [directory.root / name for name in _DATABASES]
    _move(files, _make_aside(directory, "unused", clock))
