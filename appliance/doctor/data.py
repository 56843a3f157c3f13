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
from appliance.core.i18n import mark as _
from appliance.core.tokens import Keyring
from appliance.database.integrity import find_faults, find_missing_pages
from appliance.database.migrate import list_migrations
from appliance.doctor.check import (
    ASK,
    RESTORE,
    SCHEMA,
    Check,
    CheckContext,
    NotExamined,
    Unopenable,
    fail,
    ok,
    utc,
    warn,
)
from appliance.door.guest_pass import get_signing_key
from appliance.privacy import LIST, find_unreadable

_MIB = 1 << 20
_LARGE_WAL = 64 * _MIB
_OTHERS = 0o077
_SHOWN = 5


def permissions(context: CheckContext) -> Check:
    """Check that files have mode 0600, folders 0700, and the same owner (docs/security.md, S25)."""
    root = context.directory.root
    owner = root.stat().st_uid
    found = list(_walk(context.directory))
    if foreign := [path for path, state in found if state.st_uid != owner]:
        finding = _("Some files do not belong to the owner of the box: %(names)s.")
        command = f"chown -R {owner} {root}"
        return fail(finding, ASK, names=_some(root, foreign), command=command)
    if readable := [path for path, state in found if state.st_mode & _OTHERS]:
        finding, command = _("Other users can read %(names)s."), "venuebox doctor --fix"
        return fail(finding, ASK, names=_some(root, readable), command=command)
    return ok(_("Only the owner of the box can read its files."))


def master_key(context: CheckContext) -> Check:
    """Check that `secrets/master.key` exists, has 32 bytes and is private."""
    path = context.directory.master_key_file
    shown = path.relative_to(context.directory.root)
    if not path.exists():
        finding = _("The master key is missing: no link and no pass can be read.")
        remedy = _("Do not restart the box. Ask the person who installed it to restore the last "
                   "backup to another directory and to copy %(path)s from there.")  # fmt: skip
        return fail(finding, remedy, path=shown)
    try:
        context.directory.master_key()
    except OperatorError as trouble:
        finding = _("The master key cannot be used: %(trouble)s.")
        remedy = _(
            "Ask the person who installed the box: %(command)s, or restore %(path)s from a backup."
        )
        command = "venuebox doctor --fix"
        return fail(finding, remedy, trouble=trouble, command=command, path=shown)
    return ok(_("The master key can be used."))


def erasures(context: CheckContext) -> Check:
    """Check that all lines of `erasures.jsonl` can be read.

    After a restore, the box reads this file to repeat the erasures.
    """
    root = context.directory.root
    if not (root / LIST).exists():
        raise NotExamined
    try:
        unreadable = find_unreadable(root)
    except OperatorError as trouble:
        remedy = _("Give it back to the owner of the box. If it is damaged, move it away and "
                   "restart the box.")  # fmt: skip
        return fail(_("The list of erasures cannot be read: %(trouble)s."), remedy, trouble=trouble)
    if unreadable:
        finding = _("Some lines of %(file)s cannot be read: %(numbers)s.")
        remedy = _("Restart the box, which writes them again. Then stop it and delete these lines.")
        return warn(finding, remedy, file=LIST, numbers=list(map(str, unreadable)))
    return ok(_("The list of erasures can be read."))


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
    """Check that both databases exist and pass quick_check, foreign_key_check and a WAL check."""
    damaged, first = [], ""
    for environment in ENVIRONMENTS:
        path = context.directory.database(environment)
        try:
            with context.file(environment) as reader:
                damage = find_faults(reader.connection, "quick_check(20)")
                # The WAL check must run outside a transaction.
                reader.connection.execute("ROLLBACK")
                missing = find_missing_pages(reader.connection, path)
                damage += [missing] if missing else []
        except Unopenable:
            finding = _("The databases cannot be opened: nothing can be written in %(root)s, or "
                        "its disk is full.")  # fmt: skip
            remedy = _("Free space, or give these files back to the box. The databases are sound.")
            return fail(finding, remedy, root=context.directory.root)
        except NotExamined:
            damage = ["missing"]
        except (apsw.CorruptError, apsw.NotADBError, apsw.IOError) as error:
            damage = [str(error)]
        if damage:
            damaged.append(path.name)
            first = first or damage[0]
    if damaged:
        finding = _("Data is missing or damaged: %(names)s (%(first)s).")
        command = "venuebox restore --latest"
        return fail(finding, RESTORE, names=damaged, first=first, command=command)
    return ok(_("Both databases are sound."))


def schema(context: CheckContext) -> Check:
    """Check that the databases have the current schema, or one that `serve` will upgrade."""
    known = list_migrations()[-1][0]
    found = []
    for environment in ENVIRONMENTS:
        with context.file(environment) as reader:
            found.append(reader.value(SCHEMA))
    if max(found) > known:
        finding = _("The data was written by a newer version (schema %(found)s, here %(known)s).")
        remedy = _("Install that version again: nothing was changed.")
        return fail(finding, remedy, found=max(found), known=known)
    if min(found) < known:
        finding = _("The next start upgrades the data (schema %(found)s to %(known)s).")
        remedy = _("Start the box with this version. It keeps a copy first.")
        return warn(finding, remedy, found=min(found), known=known)
    return ok(_("Schema %(known)s."), known=known)


def wal(context: CheckContext) -> Check:
    """Check that the write-ahead logs are at most 64 MiB (docs/promises.md, G11)."""
    files = [context.directory.root / f"{environment}.db-wal" for environment in ENVIRONMENTS]
    size = max((file.stat().st_size for file in files if file.exists()), default=0)
    if size > _LARGE_WAL:
        finding = _("The write-ahead log has %(size)s MiB: something has been reading for hours.")
        remedy = _("Stop running exports, then restart the box.")
        return warn(finding, remedy, size=size // _MIB)
    return ok(_("Write-ahead log: %(size)s MiB."), size=size // _MIB)


def signing_key(context: CheckContext) -> Check:
    """Check that the signing key decrypts with the master key and is at most a year old."""
    master, oldest = context.key(), 0
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            try:
                get_signing_key(reader, Keyring(master, environment))
            except OperatorError as trouble:
                finding = _("The guest pass key (%(environment)s) cannot be opened: %(trouble)s.")
                values = {"environment": environment, "trouble": trouble}
                return fail(finding, RESTORE, **values, command="venuebox restore --latest")
            created = reader.value("SELECT created_at FROM signing_key WHERE retired_at IS NULL")
            oldest = max(oldest, reader.now - created)
    finding = _("Age of the guest pass key in days: %(days)s.")
    if oldest > 366 * DAY_MS:
        remedy = _(
            "Change it every year, in the portal under “Door”. Passes already issued stay valid."
        )
        return warn(finding, remedy, days=oldest // DAY_MS)
    return ok(finding, days=oldest // DAY_MS)


def backups(context: CheckContext) -> Check:
    """Check that a recent verified backup exists, and not only on the same drive as the box."""
    record = read_record(context.directory.root)
    settings = context.known_settings()
    plug_in = _("Plug in the backup drive, or set %(setting)s to another folder.")
    setting = "backup.directory"
    try:
        folder = find_catalogue(context.directory, settings)
    except OperatorError as trouble:
        finding = _("Backups are not possible: %(trouble)s.")
        return fail(finding, plug_in, trouble=trouble, setting=setting)
    because, command = f" ({record.trouble})" if record.trouble else "", "venuebox backup"
    if record.at is None:
        finding = _("No backup has been verified yet%(because)s.")
        remedy = _("Make one in the portal under “The box” or with %(command)s, then print the "
                   "recovery kit.")  # fmt: skip
        return warn(finding, remedy, because=because, command=command)
    when = utc(record.at)
    if is_overdue(record, context.clock):
        finding = _("The last verified backup is from %(when)s%(because)s.")
        remedy = _("Leave the box on at night, or make a backup now: %(command)s")
        result = fail if context.clock.now() - record.at > 7 * DAY_MS else warn
        return result(finding, remedy, when=when, because=because, command=command)
    if needs_new_kit(context.directory):
        finding = _("The printed recovery kit opens no new backup, because its key was lost here.")
        remedy = _("Print a new recovery kit in the portal under “The box” or with %(command)s. "
                   "Keep the old one for the old backups.")  # fmt: skip
        return warn(finding, remedy, command="venuebox backup kit")
    device, root = context.machine.device, context.directory.root
    if device(folder) == device(root) and not settings.backup.target:
        finding = _("Backups go to %(shelf)s, on the same drive as the box: if it fails, both are "
                    "lost.")  # fmt: skip
        return warn(finding, plug_in, shelf=folder, setting=setting)
    finding = _("Last backup: %(latest)s. Last backup restored and found whole: %(when)s.")
    return ok(finding, latest=utc(record.latest or record.at), when=when)


def backup_target(context: CheckContext) -> Check:
    """Check that backups have been copied to the backup target and that the last copying worked."""
    target = context.known_settings().backup.target
    if not target:
        raise NotExamined
    record, command = read_copy_record(context.directory.root), "venuebox backup target"
    remedy = _("Correct %(setting)s or the server, then see what happens with: %(command)s")
    setting = "backup.target"
    if record.target != target or record.at is None:
        because = f" ({record.trouble})" if record.target == target and record.trouble else ""
        finding = _("No backup has been copied to %(target)s yet%(because)s.")
        return warn(finding, remedy, target=target, because=because, setting=setting,
                    command=command)  # fmt: skip
    when = utc(record.at)
    if record.trouble:
        finding = _("Backups are not safe at %(target)s: %(trouble)s. Last copy: %(when)s.")
        since = record.failing_since or 0
        result = fail if context.clock.now() - since > 7 * DAY_MS else warn
        return result(finding, remedy, target=target, trouble=record.trouble, when=when,
                      setting=setting, command=command)  # fmt: skip
    finding = _("Last copy at %(target)s: %(when)s, last copy restored on trial: %(proven)s.")
    return ok(finding, target=target, when=when, proven=utc(record.proven_at or record.at))
