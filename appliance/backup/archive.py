"""What is in a backup: the manifest, both databases, the secrets, the settings, certificates."""

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

import msgspec

from appliance.backup.sealed import SealedReader, SealedWriter
from appliance.data_directory import DataDirectory
from appliance.durable import open_private
from appliance.environment import EnvironmentName
from appliance.errors import Trouble
from appliance.file_ownership import make_folder
from appliance.store.snapshot import count_rows

# How far it is: bytes done, bytes in all.
Progress = Callable[[int, int], None]

_MANIFEST = "manifest.json"
_KEPT = re.compile(
    r"(live|test)\.db|settings\.toml|erasures\.jsonl|(secrets|tls)/[\w][\w.-]*(/[\w][\w.-]*)?"
)
_BLOCK = 1 << 20
_DATABASE = re.compile(r"(live|test)\.db")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Each file with its size and SHA-256, each database with the rows of each table."""

    files: dict[str, tuple[int, str]]
    rows: dict[str, dict[str, int]]

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(size for size, _ in self.files.values())


def list_files(directory: DataDirectory, copies: dict[EnvironmentName, Path]) -> dict[str, Path]:
    """What goes into a backup, by its name there; the databases are the copies of them."""
    found = {f"{name}.db": path for name, path in copies.items()}
    root = directory.root
    folders = (*(root / "secrets").rglob("*"), *(root / "tls").rglob("*"))
    for path in (directory.settings_file, root / "erasures.jsonl", *sorted(folders)):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not path.is_symlink() and _KEPT.fullmatch(name):
            found[name] = path
    return found


def make_manifest(files: dict[str, Path]) -> Manifest:
    """Read every file once."""
    return Manifest(
        {name: (path.stat().st_size, _hash(path)) for name, path in files.items()},
        {name: count_rows(path) for name, path in files.items() if _DATABASE.fullmatch(name)},
    )


def write_archive(
    sealed: SealedWriter, manifest: Manifest, files: dict[str, Path], progress: Progress
) -> None:
    """Seal the manifest and the files."""
    done = 0
    with tarfile.open(fileobj=sealed, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]  # it only needs write()
        _add(archive, _MANIFEST, io.BytesIO(msgspec.json.encode(manifest)))
        for name, path in files.items():
            with path.open("rb") as file:
                _add(archive, name, file)
            done += manifest.files[name][0]
            progress(done, manifest.size)
    sealed.finish()


def unpack_archive(sealed: SealedReader, folder: Path, progress: Progress) -> Manifest:
    """Put the files below `folder`, 0600, each as the manifest says; the manifest.

    Trouble when anything is missing, different, or not what a backup holds.
    """
    manifest, done = None, 0
    found: dict[str, tuple[int, str]] = {}
    try:
        with tarfile.open(fileobj=sealed, mode="r|") as archive:  # type: ignore[call-overload]  # it only needs read()
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is None:
                    raise Trouble(f"this backup holds {member.name!r}, which no backup holds")
                if manifest is None:
                    manifest = msgspec.json.decode(content.read(_BLOCK), type=Manifest)
                    continue
                if member.name not in manifest.files or not _KEPT.fullmatch(member.name):
                    raise Trouble(f"this backup holds {member.name!r}, which no backup holds")
                found[member.name] = _unpack(content, folder / member.name)
                done += found[member.name][0]
                progress(done, manifest.size)
    except (tarfile.TarError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Trouble(f"this backup is damaged ({type(error).__name__}): use another one") from None
    sealed.finish()
    if manifest is None or found != manifest.files:
        raise Trouble("this backup is not whole: use another one")
    return manifest


def _add(archive: tarfile.TarFile, name: str, file: BinaryIO) -> None:
    member = tarfile.TarInfo(name)
    member.size = file.seek(0, os.SEEK_END)
    member.mode = 0o600
    file.seek(0)
    archive.addfile(member, file)


def _unpack(content: IO[bytes], path: Path) -> tuple[int, str]:
    make_folder(path.parent)
    digest, size = hashlib.sha256(), 0
    with open(path, "xb", opener=open_private) as file:
        while block := content.read(_BLOCK):
            digest.update(block)
            size += file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return size, digest.hexdigest()


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
