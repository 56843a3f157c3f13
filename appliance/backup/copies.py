"""Copy backups to the target, delete old copies, test a copy each week, and fetch a copy."""

import asyncio
import contextlib
import io
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from appliance.backup import archive, catalogue
from appliance.backup.recovery_key import find_recovery_key
from appliance.backup.restore import prove, require_room, scratch_folder
from appliance.backup.targets import (
    HEAD_BYTES,
    Target,
    TargetError,
    open_target,
)
from appliance.clock import DAY_MS, Clock, ZoneDatabase
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import read_json, write_json
from appliance.core.settings import BackupSettings, Settings
from appliance.core.ssh import ensure_key

_RECORD = "last-copy.json"
TRIAL_MS = 7 * DAY_MS


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """The latest copy at the target. Times are in ms since 1970."""

    target: str = ""
    file: str = ""
    at: int | None = None  # when it was copied
    proven_at: int | None = None  # when a copy last passed a trial restore
    failing_since: int | None = None
    trouble: str = ""  # the error of the latest attempt, or ""


def read_copy_record(root: Path) -> CopyRecord:
    """Return the record of the box in `root`, or an empty record if it cannot be read."""
    return read_json(root / _RECORD, CopyRecord) or CopyRecord()


class UnusableCopy(OperatorError):
    """Raised if a copy at the target cannot be restored."""


@dataclass(frozen=True, slots=True)
class Copier:
    """Keeps the copies at the target up to date. Its methods block, so call them in a thread."""

    directory: DataDirectory
    settings: Settings
    clock: Clock
    zones: ZoneDatabase

    def next_due(self) -> int | None:
        """Return when the next copy or trial restore is due, in ms since 1970; 0 means now.

        Returns None if no target is set or there is no backup yet.
        """
        made, record = catalogue.read_record(self.directory.root), self._record()
        if not self.settings.backup.target or made.latest is None:
            return None
        if record.file != made.file or record.proven_at is None:
            return 0
        return record.proven_at + TRIAL_MS

    def run(self, *, must_try: bool = False) -> CopyRecord:
        """Copy the latest backup and delete old copies. Once a week, try to restore the copy.

        With `must_try`, makes the trial restore even if a week has not passed. Records the result.
        Raises UnusableCopy if the copy cannot be restored, and OperatorError if anything else
        fails.
        """
        try:
            return asyncio.run(self._run(must_try=must_try))
        except (OperatorError, OSError) as error:
            before = self._record()
            since = before.failing_since or self.clock.now()
            self._remember(replace(before, failing_since=since, trouble=str(error)))
            if isinstance(error, OperatorError):
                raise
            raise OperatorError(str(error)) from None

    async def _run(self, *, must_try: bool) -> CopyRecord:
        backup, record, now = self.settings.backup, self._record(), self.clock.now()
        if backup.target.startswith("sftp:"):
            ensure_key(self.directory.root)
        folder = catalogue.find_catalogue(self.directory, self.settings)
        path = folder / catalogue.read_record(self.directory.root).file
        header, size = archive.show_header(path), path.stat().st_size
        tried = record.proven_at
        is_trial = must_try or tried is None or not 0 <= now - tried < TRIAL_MS
        with scratch_folder(self.directory) as scratch:
            async with open_target(backup, self.directory) as target:
                files = await target.list()
                if files.get(path.name) != size:
                    await target.put(path, size)
                record = replace(record, file=path.name, at=now)
                self._remember(record)
                # The headers of the box's own backups need not be read from the target.
                known = {own.name: found for own, found in catalogue.list_backups(folder)}
                copies = await _list_copies(target, {*files, path.name}, known)
                ours = [copy for copy in copies if copy[1].venue_id == header.venue_id]
                for old in catalogue.choose_old(ours):  # same rule as in the box's own folder
                    if old != Path(path.name):
                        await target.delete(old.name)
                if is_trial:
                    databases = sum(path.stat().st_size for path in self.directory.databases)
                    failure = "the trial restore of a copy was not started"
                    require_room(self.directory, size + databases, failure)
                    await target.get(path.name, scratch / path.name, size)
            if is_trial:
                self._prove(scratch / path.name, scratch)
                record = replace(record, proven_at=now)
        record = replace(record, failing_since=None, trouble="")
        self._remember(record)
        return record

    def _prove(self, path: Path, scratch: Path) -> None:
        key = find_recovery_key(self.directory)
        if key is None:
            raise OperatorError("secrets/recovery.key is missing. Run venuebox backup.")
        try:
            with archive.open_backup(path) as file:
                prove(file, key, scratch, self.clock, self.zones)
        except OperatorError as error:
            raise UnusableCopy(f"the copy {path.name} cannot be restored: {error}") from None

    def _record(self) -> CopyRecord:
        target, record = self.settings.backup.target, read_copy_record(self.directory.root)
        return record if record.target == target else CopyRecord(target)

    def _remember(self, record: CopyRecord) -> None:
        with contextlib.suppress(OSError):  # ignore a full disk, which an alert already reports
            write_json(self.directory.root / _RECORD, record)


async def _list_copies(
    target: Target, names: Iterable[str], known: dict[str, archive.Header]
) -> list[tuple[Path, archive.Header]]:
    """Return the path and the header of each backup among the files `names`, latest first.

    `known` maps file names to headers that need not be read from the target. Headers that are read
    are added to it.
    """
    found: list[tuple[Path, archive.Header]] = []
    for name in filter(catalogue.slug_of, names):
        with contextlib.suppress(OperatorError):  # skip files that are not backups
            if name not in known:
                head = await target.read(name, HEAD_BYTES) or b""
                known[name] = archive.read_header(io.BytesIO(head))[0]
            found.append((Path(name), known[name]))
    return sorted(found, key=lambda backup: backup[1].order, reverse=True)


def fetch_latest(
    source: str, settings: BackupSettings, directory: DataDirectory, folder: Path
) -> Path:
    """Copy the latest backup at the target `source` into `folder` and return its path.

    If `source` ends with the name of a backup, that backup is copied. Raises TargetError if the
    target fails or does not contain the backup. Also raises it if the target has backups of several
    venues and `source` does not name one of the backups. Raises OperatorError if there is too
    little disk space.
    """
    address, wanted = split_source(source)

    async def fetch() -> Path:
        async with open_target(replace(settings, target=address), directory) as target:
            latest, size = await find_latest(target, address, {}, wanted)
            require_room(directory, size, "the backup was not fetched")
            await target.get(latest, folder / latest, size)
        return folder / latest

    return asyncio.run(fetch())


def split_source(source: str) -> tuple[str, str]:
    """Split `source` into (address of the target, name of a backup).

    The name is "" if `source` is only the address of a target.
    """
    url = urlsplit(source)
    if not url.path.endswith(catalogue.SUFFIX):
        return source, ""
    parent, _, wanted = url.path.rpartition("/")
    return urlunsplit(url._replace(path=parent)), wanted


async def find_latest(
    target: Target, where: str, known: dict[str, archive.Header], wanted: str = ""
) -> tuple[str, int]:
    """Return the name and size of the latest backup at the target, or of `wanted` if it is given.

    `where` is the target's address. `known` is as in `_list_copies`. Raises TargetError if the
    backup does not exist, or if there are backups of several venues and `wanted` is not given.
    """
    files = await target.list()
    names = [name for name in files if catalogue.slug_of(name)]
    # Read the headers, because the time in a name is wrong if the box's clock was wrong.
    copies = [] if wanted else await _list_copies(target, names, known)
    if len({header.venue_id for _path, header in copies}) > 1:
        slugs = sorted({header.slug for _path, header in copies})
        raise TargetError(
            f"{where} has backups of several venues ({', '.join(slugs)}). "
            "Add the name of one backup to the address."
        )
    latest = wanted or next((path.name for path, _header in copies), "")
    if latest not in names:
        raise TargetError(f"{where} has no backup {wanted}".rstrip())
    return latest, files[latest]
