"""Verify a backup: restore it on trial, aside, and compare the result with what went in."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from appliance.backup.archive import (
    Header,
    Manifest,
    Progress,
    SealedReader,
    read_header,
    unpack_archive,
)
from appliance.backup.recovery_key import RecoveryKey
from appliance.clock import Clock, ZoneDatabase
from appliance.core.data_directory import ENVIRONMENTS
from appliance.core.errors import OperatorError
from appliance.core.tokens import EnvironmentName, Keyring
from appliance.database.connection import Reader, open_connection
from appliance.database.integrity import count_rows, list_faults
from appliance.database.migrate import list_migrations
from appliance.door.guest_pass import decode_pass
from appliance.door.scan import look_up_code
from appliance.door.signing_keys import get_signing_key, pass_text
from appliance.reservations.rows import find_reservation


@dataclass(frozen=True, slots=True)
class Proven:
    """A verified backup: its header and its manifest."""

    header: Header
    manifest: Manifest

    @property
    def reservations(self) -> int:
        """Number of reservations in the live database of the backup."""
        return self.manifest.rows["live.db"].get("reservation", 0)


def show_header(path: Path) -> Header:
    """Read the header, without a key. Raises OperatorError if the file is no backup."""
    with open_backup(path) as file:
        return read_header(file)[0]


def prove(
    file: BinaryIO, key: RecoveryKey, scratch: Path, clock: Clock, zones: ZoneDatabase,
    progress: Progress = lambda _done, _all: None,
) -> Proven:  # fmt: skip
    """Verify the backup by restoring it to a temporary folder in `scratch`.

    Raises OperatorError if the file is damaged, a database is corrupt, rows are missing, or the
    restored keys do not accept a guest pass that they sign.
    """
    with tempfile.TemporaryDirectory(prefix="proof-", dir=scratch) as folder:
        return unpack_proven(file, key, Path(folder), clock, zones, progress)


def unpack_proven(
    file: BinaryIO, key: RecoveryKey, folder: Path, clock: Clock, zones: ZoneDatabase,
    progress: Progress = lambda _done, _all: None,
) -> Proven:  # fmt: skip
    """Verify the backup as `prove` does, and leave the restored files in `folder`."""
    sealed = SealedReader(file, key)
    manifest = unpack_archive(sealed, folder, progress)
    master = folder / "secrets" / "master.key"
    if not master.exists():
        raise OperatorError("this backup has no master key: use another one")
    for name in ENVIRONMENTS:
        _prove_database(folder / f"{name}.db", name, manifest, master.read_bytes(), clock, zones)
    return Proven(sealed.header, manifest)


def _prove_database(
    path: Path, name: EnvironmentName, manifest: Manifest, master: bytes, clock: Clock,
    zones: ZoneDatabase,
) -> None:  # fmt: skip
    faults = list_faults(path)
    if faults:
        raise OperatorError(f"{path.name} in this backup is damaged ({faults[0]}): use another one")
    if count_rows(path) != manifest.rows[path.name]:
        raise OperatorError(f"{path.name} in this backup lacks rows: use another one")
    with closing(open_connection(path, writable=False)) as connection:
        if int(connection.pragma("user_version")) == list_migrations()[-1][0]:
            _prove_pass(Reader(connection, clock, zones), Keyring(master, name), name)


def _prove_pass(reader: Reader, keyring: Keyring, name: EnvironmentName) -> None:
    """Check that the signing key decrypts and that the latest reservation's pass is accepted."""
    kid, _private_key = get_signing_key(reader, keyring)
    latest = reader.value("SELECT id FROM reservation ORDER BY seq DESC LIMIT 1")
    reservation = None if latest is None else find_reservation(reader, latest)
    if reservation is None:
        return
    text = pass_text(reader, keyring, name, reservation)
    read = decode_pass(text)
    known = reader.value("SELECT public_key FROM signing_key WHERE kid = :kid", {"kid": kid})
    refused = look_up_code(reader, keyring, name, text, by_name=False).refused
    if read is None or not read.is_signed_by(known) or refused:
        raise OperatorError(
            f"the guest passes of this backup ({name}) are not accepted: use another one"
        )


@contextmanager
def open_backup(path: Path) -> Iterator[BinaryIO]:
    """Open the file, to be read from the medium. Raises OperatorError if it cannot be opened."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}") from None
    with file:
        with contextlib.suppress(OSError):  # only advice to the kernel
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        yield file
