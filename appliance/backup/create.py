"""Create a backup: copy, encrypt, sync, verify, rename; then delete old backups."""

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from pathlib import Path

import apsw

from appliance.backup.archive import Header, SealedWriter, list_files, make_manifest, write_archive
from appliance.backup.catalogue import (
    SUFFIX,
    Record,
    find_catalogue,
    find_volume,
    read_record,
    rotate,
    write_record,
)
from appliance.backup.recovery_key import RecoveryKey, ensure_recovery_key
from appliance.backup.verify import Proven, open_backup, prove
from appliance.clock import Clock, ZoneDatabase, format_instant
from appliance.core.data_directory import ENVIRONMENTS, DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import PART, exclusive, make_folder, open_part, put_in_place
from appliance.core.settings import Settings
from appliance.core.tokens import EnvironmentName, Tokens
from appliance.database.integrity import copy_database, describe_venue, read_schema_number
from appliance.database.migrate import find_upgrade
from appliance.environment import own_version

_ABANDONED_SECONDS = 6 * 3600
_PATIENCE_SECONDS = 540.0  # wait for another backup; systemd allows a start 600 after an upgrade

_NO_ROOM = "there is no room for it, so make some where it goes and beside the box"
_WAYS_OUT = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EROFS: "its folder may only be read. Where systemd runs the box, venuebox service "
    "install lets it write there; else check the volume",
    errno.EACCES: "the box's user may not write in its folder, so give the folder to that user",
}

# Called with the phase (copy, seal, prove), the amount done and the total.
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Maker:
    """Creates backups. `tell` is called with the progress of each phase: copy, seal, prove."""

    directory: DataDirectory
    settings: Settings
    clock: Clock
    tokens: Tokens
    zones: ZoneDatabase
    tell: Tell = lambda _what, _done, _all: None
    patience: float = _PATIENCE_SECONDS  # seconds to wait for another backup of this box

    def make(self, *, to: Path | None = None, may_rotate: bool = True) -> tuple[Path, Proven]:
        """Create a verified backup in the settings' folder, or in `to`, while the box may run.

        In the settings' folder, one backup runs at a time; `to` does not wait for another, whose
        volume may hang. Raises OperatorError if there is no backup; then nothing was deleted and
        nothing is left over.
        """
        if to is not None and not to.is_dir():
            raise OperatorError(f"{to} is not a folder: plug the volume in, or create it first")
        try:
            if to is None:
                return self._make_for_the_box(may_rotate=may_rotate)
            return self._make(to)
        except (OperatorError, OSError, apsw.Error) as error:
            trouble = _sentence(error)
            if to is None:
                before = read_record(self.directory.root)
                self._remember(replace(before, tried_at=self.clock.now(), trouble=trouble))
            raise OperatorError(trouble) from None

    def _make_for_the_box(self, *, may_rotate: bool) -> tuple[Path, Proven]:
        self.tell("copy", 0, len(ENVIRONMENTS))
        own = self.directory.root / "backups"
        make_folder(own)
        with exclusive(own, self.patience, "another backup of this box"):
            shelf = find_catalogue(self.directory, self.settings)
            path, proven = self._make(shelf)
            size, now, volume = path.stat().st_size, self.clock.now(), str(find_volume(shelf))
            self._remember(Record(now, path.name, size, proven.reservations, now, volume=volume))
            if may_rotate:
                rotate(shelf, proven.header.venue_id)
        return path, proven

    def _make(self, shelf: Path) -> tuple[Path, Proven]:
        self.directory.refuse_lost_key()
        key = ensure_recovery_key(self.directory, self.tokens)
        _sweep(shelf)
        with scratch_folder(self.directory) as scratch:
            copies = self._copy(scratch)
            header = self._header(copies["live"], key)
            with open_part(shelf / f"{header.slug}-{header.salt[:16]}{SUFFIX}") as file:
                files = list_files(self.directory, copies)
                sealed = SealedWriter(file, header, key)
                write_archive(sealed, make_manifest(files), files, partial(self.tell, "seal"))
                file.flush()
                os.fsync(file.fileno())
                for copy in copies.values():
                    copy.unlink()
                with open_backup(Path(file.name)) as made:
                    tell = partial(self.tell, "prove")
                    proven = prove(made, key, scratch, self.clock, self.zones, tell)
                path = _find_name(shelf, header)
                put_in_place(file, path)
            return path, proven

    def _copy(self, scratch: Path) -> dict[EnvironmentName, Path]:
        copies: dict[EnvironmentName, Path] = {}
        for number, name in enumerate(ENVIRONMENTS):
            self.tell("copy", number, len(ENVIRONMENTS))
            copies[name] = scratch / f"{name}.db"
            copy_database(self.directory.database(name), copies[name])
        return copies

    def _header(self, live: Path, key: RecoveryKey) -> Header:
        return Header(
            *describe_venue(live),
            made_at=format_instant(self.clock.now()),
            version=own_version(),
            schema=read_schema_number(live),
            key_check=key.check,
            salt=self.tokens.random_bytes(32).hex(),
        )

    def _remember(self, record: Record) -> None:
        with contextlib.suppress(OSError):  # an alert reports a full disk
            write_record(self.directory.root, record)


@contextmanager
def scratch_folder(directory: DataDirectory) -> Iterator[Path]:
    """A temporary private folder in the data directory; `serve` deletes leftovers of a crash."""
    make_folder(directory.tmp)
    folder = Path(tempfile.mkdtemp(prefix="backup-", dir=directory.tmp))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def back_up_before_upgrade(maker: Maker) -> str:
    """Create a verified backup if a schema upgrade is due. Returns a message to print, or "".

    Falls back to the box's own folder if the settings' folder fails. Raises OperatorError if both
    fail; then the schema must not be upgraded. The caller holds the lock; the box is not serving.
    """
    upgrade = find_upgrade(maker.directory.databases)
    if upgrade is None:
        return ""
    old, new = upgrade
    own = maker.directory.root / "backups"
    try:
        path, _ = maker.make()
    except OperatorError as trouble:
        try:
            make_folder(own)
            path, proven = maker.make(to=own)
        except (OperatorError, OSError):
            raise OperatorError(
                f"schema {old} is not upgraded to {new}: there must be a backup first ({trouble}). "
                "Start again afterwards; nothing was changed"
            ) from None
        with contextlib.suppress(OSError):
            rotate(own, proven.header.venue_id)  # a failing upgrade creates one at each start
    return f"schema {old} becomes {new}; the box as it was is in {path}"


def _sweep(shelf: Path) -> None:
    """Delete unfinished files of a power cut that are older than 6 hours."""
    for left in shelf.glob(f".*{SUFFIX}*{PART}"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                left.unlink()


def _find_name(shelf: Path, header: Header) -> Path:
    """Return a free name that sorts by date; a second backup in the same second gets a number."""
    stem = f"{header.slug}-{header.made_at[:19].replace(':', '')}Z"
    names = chain([stem], (f"{stem}-{number}" for number in count(2)))
    return next(path for name in names if not (path := shelf / f"{name}{SUFFIX}").exists())


def _sentence(error: Exception) -> str:
    if isinstance(error, apsw.FullError):
        return f"the backup could not be written: {_NO_ROOM}"
    if isinstance(error, apsw.Error):
        return f"the backup could not be made ({error}): run venuebox doctor"
    if not isinstance(error, OSError):
        return str(error)
    why = _WAYS_OUT.get(error.errno or 0, error.strerror or str(error))
    return f"the backup could not be written: {why}"
