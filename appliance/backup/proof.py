"""The proof of a backup: it is restored aside, and what came out is compared with what went in."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from appliance.backup.archive import Manifest, Progress, unpack_archive
from appliance.backup.recovery_key import RecoveryKey
from appliance.backup.sealed import Header, SealedReader, read_header
from appliance.clock import Clock, ZoneDatabase
from appliance.data_directory import ENVIRONMENTS
from appliance.environment import EnvironmentName
from appliance.errors import Trouble
from appliance.model.guest_pass import decode_pass
from appliance.store.connection import Reader, open_connection
from appliance.store.guest_passes import pass_text
from appliance.store.migrate import list_migrations
from appliance.store.readings import read_code
from appliance.store.reservations import find_reservation
from appliance.store.signing_keys import get_signing_key
from appliance.store.snapshot import count_rows, list_faults
from appliance.tokens import Keyring


@dataclass(frozen=True, slots=True)
class Proven:
    """A backup that was restored whole: its header, what it holds, and how many passes."""

    header: Header
    manifest: Manifest

    @property
    def reservations(self) -> int:
        """How many the live database of the backup has."""
        return self.manifest.rows["live.db"].get("reservation", 0)


def show_header(path: Path) -> Header:
    """What the file says of itself, without any key. Trouble when it is no backup."""
    with open_backup(path) as file:
        return read_header(file)[0]


def prove(
    file: BinaryIO, key: RecoveryKey, scratch: Path, clock: Clock, zones: ZoneDatabase,
    progress: Progress = lambda _done, _all: None,
) -> Proven:  # fmt: skip
    """Restore the backup below `scratch` and examine it; nothing of it is left there.

    Trouble when a byte of it is not as it was written, a database is not sound, rows are
    missing, or a guest pass that it makes is not accepted by it.
    """
    with tempfile.TemporaryDirectory(prefix="proof-", dir=scratch) as folder:
        return unpack_proven(file, key, Path(folder), clock, zones, progress)


def unpack_proven(
    file: BinaryIO, key: RecoveryKey, folder: Path, clock: Clock, zones: ZoneDatabase,
    progress: Progress = lambda _done, _all: None,
) -> Proven:  # fmt: skip
    """The same, and leave what was restored in `folder`."""
    sealed = SealedReader(file, key)
    manifest = unpack_archive(sealed, folder, progress)
    master = folder / "secrets" / "master.key"
    if not master.exists():
        raise Trouble("this backup has no master key: use another one")
    for name in ENVIRONMENTS:
        _prove_database(folder / f"{name}.db", name, manifest, master.read_bytes(), clock, zones)
    return Proven(sealed.header, manifest)


def _prove_database(
    path: Path, name: EnvironmentName, manifest: Manifest, master: bytes, clock: Clock,
    zones: ZoneDatabase,
) -> None:  # fmt: skip
    faults = list_faults(path)
    if faults:
        raise Trouble(f"{path.name} in this backup is damaged ({faults[0]}): use another one")
    if count_rows(path) != manifest.rows[path.name]:
        raise Trouble(f"{path.name} in this backup misses rows: use another one")
    with closing(open_connection(path, writable=False)) as connection:
        if int(connection.pragma("user_version")) == list_migrations()[-1][0]:
            _prove_pass(Reader(connection, clock, zones), Keyring(master, name), name)


def _prove_pass(reader: Reader, keyring: Keyring, name: EnvironmentName) -> None:
    """The signing key opens, and the latest reservation's pass is read as ours again."""
    kid, _private_key = get_signing_key(reader, keyring)
    latest = reader.value("SELECT id FROM reservation ORDER BY seq DESC LIMIT 1")
    reservation = None if latest is None else find_reservation(reader, latest)
    if reservation is None:
        return
    text = pass_text(reader, keyring, name, reservation)
    read = decode_pass(text)
    known = reader.value("SELECT public_key FROM signing_key WHERE kid = :kid", {"kid": kid})
    refused = read_code(reader, keyring, name, text, by_name=False).refused
    if read is None or not read.is_signed_by(known) or refused:
        raise Trouble(f"the guest passes of this backup ({name}) are not accepted: use another one")


@contextmanager
def open_backup(path: Path) -> Iterator[BinaryIO]:
    """The file, as the medium holds it. Trouble when it cannot be read."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise Trouble(f"{path} cannot be read: {error.strerror}") from None
    with file:
        with contextlib.suppress(OSError):  # not what memory remembers
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        yield file
