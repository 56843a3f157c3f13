"""Create a backup (copy, encrypt, sync, verify and rename it), then delete old backups."""

import contextlib
import errno
import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import apsw

from appliance.backup import archive, catalogue
from appliance.backup.catalogue import SUFFIX, Record, find_volume
from appliance.backup.recovery_key import ensure_recovery_key
from appliance.backup.restore import check_copies, prove, require_room, scratch_folder
from appliance.clock import Clock, ZoneDatabase, format_instant
from appliance.core.data_directory import ENVIRONMENTS, DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import PART, atomic_file, exclusive, make_folder
from appliance.core.i18n import mark as _
from appliance.core.settings import Settings
from appliance.core.ssh import ensure_key
from appliance.core.tokens import EnvironmentName
from appliance.database.connection import Reader, open_connection
from appliance.database.integrity import count_rows, describe_venue, read_schema_number
from appliance.database.vacuum import copy_database
from appliance.environment import own_version

_ABANDONED_SECONDS = 6 * 3600
# Maximum time to wait for another backup to finish.
_PATIENCE_SECONDS = 540.0

_NO_ROOM = _(
    "the backup could not be written: the disk is full. Free some space in the backup folder and "
    "in the data directory."
)
_EXPLANATIONS = {
    errno.ENOSPC: _NO_ROOM,
    errno.EROFS: _(
        "the backup could not be written: its folder is read-only. If systemd runs the box, run "
        "venuebox service install to allow writing there. Otherwise, check the volume."
    ),
    errno.EACCES: _(
        "the backup could not be written: the box's user may not write to its folder. Make that "
        "user the folder's owner. Mount a FAT or exFAT drive with uid= and that user's name "
        "instead."
    ),
}

# A progress callback. It receives the phase (copy, seal or prove), the amount done and the total.
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Maker:
    """Creates backups, and reports their progress to `tell`."""

    directory: DataDirectory
    settings: Settings
    clock: Clock
    zones: ZoneDatabase
    tell: Tell = lambda _what, _done, _all: None
    patience: float = _PATIENCE_SECONDS  # seconds to wait for another backup of this box

    def make(
        self, *, to: Path | None = None, is_frequent: bool = False
    ) -> tuple[Path, archive.Manifest]:
        """Create a verified backup in the configured folder, or in `to`. The box may be running.

        With `is_frequent`, verifies the backup without a trial restore, to write less to the disk.
        Without `to`, waits until no other backup is running. With `to`, does not wait, because the
        volume of the other backup may have stopped responding. If the backup cannot be made, raises
        OperatorError, leaves no file behind and deletes no old backup.
        """
        if to is not None and not to.is_dir():
            raise OperatorError(f"{to} is not a folder. Plug in its volume, or create the folder.")
        try:
            if to is None:
                return self._make_for_the_box(is_frequent=is_frequent)
            return self._make(to, is_frequent=False)[:2]
        except (OperatorError, OSError, apsw.Error) as error:
            trouble = _describe(error, self.directory.root)
            if to is None:
                before = catalogue.read_record(self.directory.root)
                self._remember(replace(before, trouble=trouble))
            raise OperatorError(trouble) from None

    def _make_for_the_box(self, *, is_frequent: bool) -> tuple[Path, archive.Manifest]:
        self.tell("copy", 0, len(ENVIRONMENTS))
        own = self.directory.root / "backups"
        make_folder(own)
        waited = f"another backup of this box was still running after {self.patience:.0f} seconds"
        with exclusive(own, self.patience, f"{waited}. Try again later."):
            folder = catalogue.find_catalogue(self.directory, self.settings)
            started = time.monotonic()
            path, made, digest = self._make(folder, is_frequent=is_frequent)
            seconds, now = time.monotonic() - started, self.clock.now()
            before = catalogue.read_record(self.directory.root)
            restored_at = before.at if is_frequent else now
            size, volume = path.stat().st_size, str(find_volume(folder))
            self._remember(
                Record(
                    restored_at, path.name, size, made.reservations, volume=volume, made_at=now,
                    seconds=seconds, digest=digest, number=made.number,
                )
            )  # fmt: skip
            catalogue.rotate(path)
        return path, made

    def _make(self, folder: Path, *, is_frequent: bool) -> tuple[Path, archive.Manifest, str]:
        self.directory.refuse_lost_key()
        key = ensure_recovery_key(self.directory)
        if self.settings.backup.target.startswith("sftp:"):
            # Even the first backup must contain this key, so that a restored box goes on copying.
            ensure_key(self.directory.root)
        _sweep(folder)
        with scratch_folder(self.directory) as scratch:
            copies = self._copy(scratch)
            digest = self._digest(copies["live"])
            path, manifest = self._describe(copies, folder)
            files = archive.list_files(self.directory, copies)
            with atomic_file(path) as file:
                seal, proof = (partial(self.tell, phase) for phase in ("seal", "prove"))
                archive.write_archive(file, manifest, files, key, seal)
                file.flush()
                os.fsync(file.fileno())
                with archive.open_backup(Path(file.name)) as made:
                    if is_frequent:
                        master = self.directory.master_key()
                        check_copies(made, key, copies, master, self.clock, self.zones, proof)
                    else:
                        for copy in copies.values():
                            copy.unlink()
                        prove(made, key, scratch, self.clock, self.zones, proof)
            return path, manifest, digest

    def _digest(self, live: Path) -> str:
        with contextlib.closing(open_connection(live, writable=False)) as connection:
            return find_digest(Reader(connection, self.clock, self.zones))

    def _copy(self, scratch: Path) -> dict[EnvironmentName, Path]:
        copies: dict[EnvironmentName, Path] = {}
        sizes = [path.stat().st_size for path in self.directory.databases if path.exists()]
        require_room(self.directory, sum(sizes), "the backup cannot be made")
        for number, name in enumerate(ENVIRONMENTS):
            self.tell("copy", number, len(ENVIRONMENTS))
            copies[name] = scratch / f"{name}.db"
            copy_database(self.directory.database(name), copies[name])
        return copies

    def _describe(
        self, copies: dict[EnvironmentName, Path], folder: Path
    ) -> tuple[Path, archive.Manifest]:
        """Return the path of the new backup and its manifest."""
        venue, slug, venue_id = describe_venue(copies["live"])
        number, now = catalogue.next_number(self.directory, folder), self.clock.now()
        manifest = archive.Manifest(
            venue, venue_id, number, format_instant(now), own_version(),
            schema=read_schema_number(copies["live"]),
            rows={path.name: count_rows(path) for path in copies.values()},
        )  # fmt: skip
        return folder / catalogue.make_name(slug, number, now, venue_id), manifest

    def _remember(self, record: Record) -> None:
        with contextlib.suppress(OSError):  # ignore a full disk, which a check already reports
            catalogue.write_record(self.directory.root, record)


def find_digest(reader: Reader) -> str:
    """Return a digest of the data that a venue would miss if the box were lost.

    It does not cover observations, sessions and deliveries, because they alone do not justify a
    backup.
    """
    digest = hashlib.sha256()
    for sql in (
        "SELECT max(seq) FROM event", "SELECT max(seq) FROM history",
        "SELECT max(seq) FROM scan_log", "SELECT max(seq) FROM audit_log",
        "SELECT count(*) FROM claim", "SELECT count(*) FROM erasure",
        "SELECT count(*) FROM no_reminders",
        "SELECT id, url, events, active FROM endpoint ORDER BY id",
        "SELECT * FROM venue ORDER BY id", "SELECT * FROM venue_table ORDER BY id",
        "SELECT * FROM slot ORDER BY id", "SELECT * FROM closing_day ORDER BY id",
    ):  # fmt: skip
        digest.update(repr(list(reader.rows(sql))).encode())
    return digest.hexdigest()


def _sweep(folder: Path) -> None:
    """Delete unfinished backups older than 6 hours, which a power cut left behind."""
    for path in folder.glob(f".*{SUFFIX}*{PART}"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink()


def _describe(error: Exception, root: Path) -> str:
    if isinstance(error, apsw.FullError):
        return _NO_ROOM
    if isinstance(error, apsw.Error):
        return f"the backup could not be made ({error}). Run venuebox doctor."
    if not isinstance(error, OSError):
        return str(error)
    path = Path(error.filename) if isinstance(error.filename, str) else None
    if error.errno == errno.EACCES and path is not None and path.is_relative_to(root):
        found = path if os.path.exists(path) else path.parent  # noqa: PTH110 - never raises
        return f"the box's user has no access to {found}. Make that user its owner."
    why = error.strerror or str(error)
    return _EXPLANATIONS.get(error.errno or 0, f"the backup could not be written: {why}")
