"""Checks of the data directory: permissions, keys, databases and backups."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw

from appliance.backup.catalogue import find_catalogue, is_overdue, needs_new_kit, read_record
from appliance.backup.copies import read_copy_record
from appliance.clock import DAY_MS
from appliance.core.data_directory import ENVIRONMENTS, DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.tokens import Keyring
from appliance.database.integrity import find_faults
from appliance.database.migrate import newest_schema
from appliance.doctor.check import (
    SCHEMA,
    Check,
    CheckContext,
    NotExamined,
    Sentence,
    Status,
    Unopenable,
    utc,
)
from appliance.door.guest_pass import get_signing_key

_MIB = 1 << 20
_LARGE_WAL = 64 * _MIB
_OTHERS = 0o077
_SHOWN = 5


def permissions(context: CheckContext) -> Check:
    """Check that one user owns all files and no other can access them (docs/security.md, S25)."""
    root = context.directory.root
    owner = root.stat().st_uid
    found = list(_walk(context.directory))
    if foreign := [path for path, state in found if state.st_uid != owner]:
        names, command = _some(root, foreign), f"chown -R {owner} {root}"
        return Check.of("permissions_other_owner", names=names, command=command)
    if readable := [path for path, state in found if state.st_mode & _OTHERS]:
        return Check.of("permissions_open", names=_some(root, readable))
    return Check.of("permissions")


def master_key(context: CheckContext) -> Check:
    """Check that `secrets/master.key` exists, has 32 bytes and is private."""
    path = context.directory.master_key_file
    shown = path.relative_to(context.directory.root)
    if not path.exists():
        return Check.of("master_key_missing", path=shown)
    try:
        context.directory.master_key()
    except OperatorError as trouble:
        return Check.of("master_key_unusable", trouble=trouble, path=shown)
    return Check.of("master_key")


def fix_permissions(directory: DataDirectory) -> list[Path]:
    """Remove other users' permissions. Returns the changed files and folders."""
    changed = []
    for path, state in _walk(directory):
        if state.st_mode & _OTHERS:
            with suppress(OSError):  # the check reports files that could not be changed
                path.chmod(stat.S_IMODE(state.st_mode) & ~_OTHERS)
                changed.append(path)
    return changed


def _walk(directory: DataDirectory) -> Iterator[tuple[Path, os.stat_result]]:
    """Iterate over the directory, its folders and its files, without following links."""
    yield directory.root, directory.root.stat()
    for parent, folders, files in os.walk(directory.root):
        for name in (*folders, *files):
            path = Path(parent, name)
            try:
                state = path.lstat()
            except FileNotFoundError:  # a running box has deleted it
                continue
            if not stat.S_ISLNK(state.st_mode):
                yield path, state


def _some(root: Path, paths: list[Path]) -> str:
    named = ", ".join(str(p if p == root else p.relative_to(root)) for p in paths[:_SHOWN])
    return named + (f" (+{len(paths) - _SHOWN})" if len(paths) > _SHOWN else "")


def integrity(context: CheckContext) -> Check:
    """Check that both databases exist and pass quick_check and foreign_key_check."""
    damaged, first = [], ""
    for environment in ENVIRONMENTS:
        path = context.directory.database(environment)
        try:
            with context.file(environment) as reader:
                damage = find_faults(reader.connection, "quick_check(20)")
        except Unopenable:
            return Check.of("integrity_unopenable", root=context.directory.root)
        except NotExamined:
            damage = ["missing"]
        except (apsw.CorruptError, apsw.NotADBError, apsw.IOError) as error:
            damage = [str(error)]
        if damage:
            damaged.append(path.name)
            first = first or damage[0]
    if damaged:
        return Check.of("integrity_damaged", names=damaged, first=first)
    return Check.of("integrity")


def schema(context: CheckContext) -> Check:
    """Check that the databases have the current schema, or one that `serve` will upgrade."""
    known = newest_schema()
    found = []
    for environment in ENVIRONMENTS:
        with context.file(environment) as reader:
            found.append(reader.value(SCHEMA))
    if max(found) > known:
        return Check.of("schema_newer", found=max(found), known=known)
    if min(found) < known:
        return Check.of("schema_older", found=min(found), known=known)
    return Check.of("schema", known=known)


def wal(context: CheckContext) -> Check:
    """Check that the write-ahead logs are at most 64 MiB (docs/promises.md, G11)."""
    files = [context.directory.root / f"{environment}.db-wal" for environment in ENVIRONMENTS]
    size = max((file.stat().st_size for file in files if file.exists()), default=0)
    return Check.of("wal_large" if size > _LARGE_WAL else "wal", size=size // _MIB)


def signing_key(context: CheckContext) -> Check:
    """Check that the signing key is at most a year old and that the master key decrypts it."""
    master, oldest = context.key(), 0
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            try:
                get_signing_key(reader, Keyring(master, environment))
            except OperatorError as trouble:
                values = {"environment": environment, "trouble": trouble}
                return Check.of("signing_key_unusable", **values)
            created = reader.value("SELECT created_at FROM signing_key WHERE retired_at IS NULL")
            oldest = max(oldest, reader.now - created)
    days = oldest // DAY_MS
    return Check.of("signing_key_old" if oldest > 366 * DAY_MS else "signing_key", days=days)


def backups(context: CheckContext) -> Check:
    """Check that a recent verified backup exists, and that the recovery kit decrypts new backups.

    If there is no backup target, also check that backups are not on the same drive as the box.
    """
    record = read_record(context.directory.root)
    settings = context.known_settings()
    try:
        folder = find_catalogue(context.directory, settings)
    except OperatorError:
        return Check.of("backups_impossible", shelf=settings.backup.directory or "backups")
    because = _in_brackets(record.trouble)
    if record.at is None:
        return Check.of("backups_unverified", because=because)
    when = utc(record.at)
    if record.trouble or is_overdue(record, context.clock):
        status = _fails_after_a_week(context, record.at)
        return Check.of("backups_overdue", status, when=when, because=because)
    if needs_new_kit(context.directory):
        return Check.of("backups_with_new_key")
    device, root = context.machine.device, context.directory.root
    if device(folder) == device(root) and not settings.backup.target:
        return Check.of("backups_on_same_drive", shelf=folder)
    return Check.of("backups", latest=utc(record.latest or record.at), when=when)


def backup_target(context: CheckContext) -> Check:
    """Check that the backup target has a copy of a backup, and that the last attempt succeeded."""
    target = context.known_settings().backup.target
    if not target:
        raise NotExamined
    record = read_copy_record(context.directory.root)
    if record.target != target or record.at is None:
        because = _in_brackets(record.trouble if record.target == target else "")
        return Check.of("backup_target_empty", target=target, because=because)
    when = utc(record.at)
    if record.trouble:
        status = _fails_after_a_week(context, record.failing_since or 0)
        values = {"target": target, "trouble": record.trouble.rstrip("."), "when": when}
        return Check.of("backup_target_fails", status, **values)
    proven = utc(record.proven_at or record.at)
    return Check.of("backup_target", target=target, when=when, proven=proven)


def _in_brackets(trouble: str) -> tuple[Sentence, ...]:
    """Return the error in brackets, translated if a catalogue has it, or nothing."""
    return (Sentence(" (%(trouble)s)", {"trouble": (Sentence(trouble),)}),) if trouble else ()


def _fails_after_a_week(context: CheckContext, since: int) -> Status:
    return "fail" if context.clock.now() - since > 7 * DAY_MS else "warn"
