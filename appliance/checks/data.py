"""Checks of the data directory: permissions, keys, databases and backups."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw

from appliance.backup.catalogue import find_catalogue, is_overdue, read_record
from appliance.backup.copies import read_copy_record
from appliance.checks.check import (
    DAMAGED,
    SCHEMA,
    Check,
    CheckContext,
    NotExamined,
    Sentence,
    Status,
    Unopenable,
    list_observations,
    utc,
)
from appliance.clock import DAY_MS
from appliance.core.data_directory import ENVIRONMENTS, DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.tokens import Keyring
from appliance.database.integrity import find_faults
from appliance.database.migrate import newest_schema
from appliance.door.guest_pass import get_signing_key

_OTHERS = 0o077
_SHOWN = 5


def permissions(context: CheckContext) -> Check:
    """Check that one user owns all files and no other can access them (docs/security.md, S25)."""
    root = context.directory.root
    owner = root.stat().st_uid
    found = list(_walk(context.directory))
    if foreign := [path for path, state in found if state.st_uid != owner]:
        names, command = _some(root, foreign), f"chown -R {owner} {root}"
        return Check.fail(
            "Some files do not belong to the owner of the box: %(names)s.",
            "Ask the person who installed the box: %(command)s",
            names=names, command=command,
        )  # fmt: skip
    if readable := [path for path, state in found if state.st_mode & _OTHERS]:
        return Check.fail(
            "Other users can read %(names)s.",
            "Ask the person who installed the box: %(command)s",
            names=_some(root, readable), command=f"chmod -R go= {root}",
        )  # fmt: skip
    return Check.ok("Only the owner of the box can read its files.")


def master_key(context: CheckContext) -> Check:
    """Check that `secrets/master.key` exists, has 32 bytes and is private."""
    path = context.directory.master_key_file
    shown = path.relative_to(context.directory.root)
    if not path.exists():
        return Check.fail(
            "The master key is missing: no link and no pass can be read.",
            "Do not restart the box. Ask the person who installed it to restore the last backup to"
            " another directory and to copy %(path)s from there.",
            path=shown,
        )
    try:
        context.directory.master_key()
    except OperatorError as trouble:
        return Check.fail(
            "The master key cannot be used: %(trouble)s.",
            "Ask the person who installed the box: %(command)s, or restore %(path)s from a backup.",
            trouble=trouble, path=shown, command=f"chmod 600 {path}",
        )  # fmt: skip
    return Check.ok("The master key can be used.")


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
    """Check that both databases exist and pass quick_check and foreign_key_check.

    Unless the check is deep, the result of the night's check counts.
    """
    if not context.deep:
        with context.rows("live") as reader:
            seen = list_observations(reader, DAMAGED)
        if not seen:
            return _SOUND
        return _damaged(["live.db, test.db"], seen[0].detail).lasting(seen[0].since)
    damaged, first = [], ""
    for environment in ENVIRONMENTS:
        path = context.directory.database(environment)
        try:
            with context.file(environment) as reader:
                damage = find_faults(reader.connection, "quick_check(20)")
        except Unopenable:
            return Check.fail(
                "The databases cannot be opened: nothing can be written in %(root)s, or its disk "
                "is full.",
                "Free space, or give these files back to the box. The databases are sound.",
                root=context.directory.root,
            )
        except NotExamined:
            damage = ["missing"]
        except (apsw.CorruptError, apsw.NotADBError, apsw.IOError) as error:
            damage = [str(error)]
        if damage:
            damaged.append(path.name)
            first = first or damage[0]
    if damaged:
        return _damaged(damaged, first)
    return _SOUND


_SOUND = Check.ok("Both databases are sound.")


def _damaged(names: list[str], first: str) -> Check:
    return Check.fail(
        "Data is missing or damaged: %(names)s (%(first)s).",
        "Tell the person who installed the box at once: the last backup has to be restored "
        "(%(command)s).",
        names=names, first=first, command="venuebox restore --latest",
    )  # fmt: skip


def schema(context: CheckContext) -> Check:
    """Check that the databases have the current schema, or one that `serve` will upgrade."""
    known = newest_schema()
    found = []
    for environment in ENVIRONMENTS:
        with context.file(environment) as reader:
            found.append(reader.value(SCHEMA))
    if max(found) > known:
        return Check.fail(
            "The data was written by a newer version (schema %(found)s, here %(known)s).",
            "Install that version again: nothing was changed.",
            found=max(found), known=known,
        )  # fmt: skip
    if min(found) < known:
        return Check.warn(
            "The next start upgrades the data (schema %(found)s to %(known)s).",
            "Start the box with this version.",
            found=min(found), known=known,
        )  # fmt: skip
    return Check.ok("Schema %(known)s.", known=known)


def signing_key(context: CheckContext) -> Check:
    """Check that the signing key is at most a year old and that the master key decrypts it."""
    master, oldest = context.key(), 0
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            try:
                get_signing_key(reader, Keyring(master, environment))
            except OperatorError as trouble:
                values = {"environment": environment, "trouble": trouble}
                return Check.fail(
                    "The guest pass key (%(environment)s) cannot be opened: %(trouble)s.",
                    "Tell the person who installed the box at once: the last backup has to be "
                    "restored (%(command)s).",
                    **values,
                    command="venuebox restore --latest",
                )
            created = reader.value("SELECT created_at FROM signing_key WHERE retired_at IS NULL")
            oldest = max(oldest, reader.now - created)
    days = oldest // DAY_MS
    return (
        Check.warn(
            "Age of the guest pass key in days: %(days)s.",
            "Change it every year, in the portal under “Door”. Passes already issued stay valid.",
            days=days,
        )
        if oldest > 366 * DAY_MS
        else Check.ok("Age of the guest pass key in days: %(days)s.", days=days)
    )


def backups(context: CheckContext) -> Check:
    """Check that a recent verified backup exists.

    If there is no backup target, also check that backups are not on the same drive as the box.
    """
    record = read_record(context.directory.root)
    settings = context.known_settings()
    try:
        folder = find_catalogue(context.directory, settings)
    except OperatorError:
        return Check.fail(
            "Backups are not possible: %(shelf)s or its volume is not there.",
            "Plug in the backup drive, or set %(setting)s to another folder.",
            shelf=settings.backup.directory or "backups", setting="backup.directory",
        )  # fmt: skip
    because = _in_brackets(record.trouble)
    if record.at is None:
        return Check.warn(
            "No backup has been verified yet%(because)s.",
            "Make one in the portal under “The box” or with %(command)s, then print the recovery "
            "kit.",
            because=because, command="venuebox backup",
        )  # fmt: skip
    when = utc(record.at)
    if record.trouble or is_overdue(record, context.clock):
        status = _fails_after_a_week(context, record.at)
        return Check.of(
            status,
            "The last verified backup is from %(when)s%(because)s.",
            "Leave the box on at night, or make a backup now: %(command)s",
            when=when, because=because, command="venuebox backup",
        ).lasting(record.at)  # fmt: skip
    device, root = context.machine.device, context.directory.root
    if device(folder) == device(root) and not settings.backup.target:
        return Check.warn(
            "Backups go to %(shelf)s, on the same drive as the box: if it fails, both are lost.",
            "Plug in the backup drive, or set %(setting)s to another folder.",
            shelf=folder, setting="backup.directory",
        )  # fmt: skip
    return Check.ok(
        "Last backup: %(latest)s. Last backup restored and found whole: %(when)s.",
        latest=utc(record.latest or record.at), when=when,
    )  # fmt: skip


def backup_target(context: CheckContext) -> Check:
    """Check that the backup target has a copy of a backup, and that the last attempt succeeded."""
    target = context.known_settings().backup.target
    if not target:
        raise NotExamined
    record = read_copy_record(context.directory.root)
    if record.target != target or record.at is None:
        because = _in_brackets(record.trouble if record.target == target else "")
        return Check.warn(
            "No backup has been copied to %(target)s yet%(because)s.",
            "Correct %(setting)s or the server, then see what happens with: %(command)s",
            target=target, because=because, setting="backup.target",
            command="venuebox backup target",
        )  # fmt: skip
    when = utc(record.at)
    if record.trouble:
        status = _fails_after_a_week(context, record.failing_since or 0)
        values = {"target": target, "trouble": record.trouble.rstrip("."), "when": when}
        return Check.of(
            status,
            "Backups are not safe at %(target)s: %(trouble)s. Last copy: %(when)s.",
            "Correct %(setting)s or the server, then see what happens with: %(command)s",
            **values,
            setting="backup.target",
            command="venuebox backup target",
        ).lasting(record.failing_since)
    proven = utc(record.proven_at or record.at)
    return Check.ok(
        "Last copy at %(target)s: %(when)s, last copy restored on trial: %(proven)s.",
        target=target, when=when, proven=proven,
    )  # fmt: skip


def _in_brackets(trouble: str) -> tuple[Sentence, ...]:
    """Return the error in brackets, translated if a catalogue has it, or nothing."""
    return (Sentence(" (%(trouble)s)", {"trouble": (Sentence(trouble),)}),) if trouble else ()


def _fails_after_a_week(context: CheckContext, since: int) -> Status:
    return "fail" if context.clock.now() - since > 7 * DAY_MS else "warn"
