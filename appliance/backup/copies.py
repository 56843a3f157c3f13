"""Copy backups to the target, test a copy each week, and fetch a copy."""

import contextlib
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from appliance.backup import catalogue
from appliance.backup.archive import open_backup
from appliance.backup.copy_process import Get, Put, run_child
from appliance.backup.recovery_key import find_recovery_key
from appliance.backup.restore import BOOKINGS_BYTES, prove, scratch_folder
from appliance.backup.targets import Tell
from appliance.clock import DAY_MS, Clock, ZoneDatabase
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import read_json, write_json
from appliance.core.settings import BackupSettings, Settings
from appliance.core.ssh import ensure_key

log = logging.getLogger(__name__)

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
            return self._run(must_try=must_try)
        except (OperatorError, OSError) as error:
            before = self._record()
            since = before.failing_since or self.clock.now()
            self._remember(replace(before, failing_since=since, trouble=str(error)))
            if isinstance(error, OperatorError):
                raise
            raise OperatorError(str(error)) from None

    def _run(self, *, must_try: bool) -> CopyRecord:
        record, now, tried = self._record(), self.clock.now(), self._record().proven_at
        if self.settings.backup.target.startswith("sftp:"):
            ensure_key(self.directory.root)
        folder = catalogue.find_catalogue(self.directory, self.settings)
        path = folder / catalogue.read_record(self.directory.root).file
        root, backup = str(self.directory.root), self.settings.backup
        run_child(Put(root, backup, str(path)), log.warning)
        record = replace(record, file=path.name, at=now)
        self._remember(record)
        if must_try or tried is None or not 0 <= now - tried < TRIAL_MS:
            sizes = [each.stat().st_size for each in self.directory.databases]
            with scratch_folder(self.directory) as scratch:
                reserve, size = sum(sizes) + BOOKINGS_BYTES, path.stat().st_size
                run_child(Get(root, backup, path.name, str(scratch), reserve, size), log.warning)
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
            with open_backup(path) as file:
                prove(file, key, scratch, self.clock, self.zones)
        except OperatorError as error:
            raise UnusableCopy(f"the copy {path.name} cannot be restored: {error}") from None

    def _record(self) -> CopyRecord:
        target, record = self.settings.backup.target, read_copy_record(self.directory.root)
        return record if record.target == target else CopyRecord(target)

    def _remember(self, record: CopyRecord) -> None:
        with contextlib.suppress(OSError):  # ignore a full disk, which a check already reports
            write_json(self.directory.root / _RECORD, record)


def fetch_latest(
    source: str, settings: BackupSettings, directory: DataDirectory, folder: Path, tell: Tell
) -> Path:
    """Copy the latest backup at the target `source` into `folder` and return its path.

    If `source` ends with the name of a backup, that backup is copied. Raises TargetError if the
    target fails or does not contain the backup, if it has backups of several venues and `source`
    does not name one of the backups, or if there is too little disk space.
    """
    url, wanted = urlsplit(source), ""
    if url.path.endswith(catalogue.SUFFIX):
        parent, _, wanted = url.path.rpartition("/")
        url = url._replace(path=parent)
    settings = replace(settings, target=urlunsplit(url))
    job = Get(str(directory.root), settings, wanted, str(folder), BOOKINGS_BYTES)
    return folder / run_child(job, log.warning, tell)
