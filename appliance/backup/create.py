"""Make a backup: copy, seal, sync, verify, name, and only then delete old ones."""

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
    Proven,
    Record,
    find_catalogue,
    find_volume,
    open_backup,
    prove,
    read_record,
    rotate,
    write_record,
)
from appliance.backup.recovery_key import RecoveryKey, ensure_recovery_key
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
_PATIENCE_SECONDS = 540.0  # of who begins; systemd gives the first start after an upgrade 600

_NO_ROOM = "there is no room for it, so make some where it goes and beside the box"
_WAYS_OUT = {
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.EROFS: "its folder may only be read. Where systemd runs the box, venuebox service "
    "install lets it write there; else check the volume",
    errno.EACCES: "the box's user may not write in its folder, so give the folder to that user",
}

# What is going on, and how far it is.
Tell = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Maker:
    """Everything that a backup needs. `tell` hears what is going on: copy, seal, prove."""

    directory: DataDirectory
    settings: Settings
    clock: Clock
    tokens: Tokens
    zones: ZoneDatabase
    tell: Tell = lambda _what, _done, _all: None
    patience: float = _PATIENCE_SECONDS  # with another backup of this box

    def make(self, *, to: Path | None = None, may_rotate: bool = True) -> tuple[Path, Proven]:
        """A proven backup in the settings' folder, or in `to`. Runs beside a serving box.

        In the settings' folder one is made at a time: the night's, one that was asked for, a
        command's. `to` waits for none, for the settings' volume may hang. OperatorError says why
        there is none, and then nothing was deleted and nothing is left over.
        """
        if to is not None and not to.is_dir():
            raise OperatorError(f"{to} is no folder: plug the volume in, or make it first")
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
        with contextlib.suppress(OSError):  # a full disk is told by the condition
            write_record(self.directory.root, record)


@contextmanager
def scratch_folder(directory: DataDirectory) -> Iterator[Path]:
    """A private folder beside the data, gone afterwards; `serve` sweeps what a crash left."""
    make_folder(directory.tmp)
    folder = Path(tempfile.mkdtemp(prefix="backup-", dir=directory.tmp))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def back_up_before_upgrade(maker: Maker) -> str:
    """Make a proven backup if a schema is about to change; what is to be said of it, or "".

    Where the settings' folder takes none, it goes into the box's own. OperatorError when neither
    does, and then nothing may be upgraded. The caller holds the lock; nobody serves the box yet.
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
            rotate(own, proven.header.venue_id)  # each start of a failing upgrade comes here
    return f"schema {old} becomes {new}; the box as it was is in {path}"


def _sweep(shelf: Path) -> None:
    """Delete the parts that a power cut left."""
    for left in shelf.glob(f".*{SUFFIX}*{PART}"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                left.unlink()


def _find_name(shelf: Path, header: Header) -> Path:
    """A name that sorts by date; two of one second get a number."""
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
