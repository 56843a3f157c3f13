"""Signed releases of the program, and the record of the latest update.

A release is a tar file with three members in this order: `manifest.json`, its Ed25519 signature
`manifest.sig`, and the program. packaging/release.py makes releases. The program contains the
public key with which it verifies them.

The box runs without permission to replace its own program. To install a release, it writes a
request into the data directory. systemd then runs `venuebox update` as root. This command installs
the release and records its progress.
"""

import hashlib
import os
import re
import tarfile
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import IO, Literal

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from appliance.core.errors import OperatorError
from appliance.core.files import acting_as, find_owner, read_json, write_json

KEY_FILE = "release.pub"  # the public key in hex; the binary contains it
_PROGRAM_MEMBER = "venuebox"
HEAD_BYTES = 160 * 1024  # enough for everything before the program in a release
_MANIFEST_MAX = 64 * 1024
_BLOCK = 1 << 20
# The exceptions that tarfile raises if a file is damaged.
_DAMAGED = (tarfile.TarError, ValueError, OverflowError)
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
REQUEST = "update-request"
_RECORD = "last-update.json"
_ADDRESS_MAX = 2000
# How long a stage takes at most, in ms. After that, the update was interrupted.
_LONGEST_MS = {"asked": 60_000, "download": 3_700_000, "backup": 1_900_000, "start": 300_000}

Stage = Literal["asked", "download", "backup", "start", "done", "went_back", "stays", "failed"]
OUTCOMES: frozenset[Stage] = frozenset({"done", "went_back", "stays", "failed"})
INTERRUPTED = "it was interrupted"  # `trouble` after a power cut, for example


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """The description of a release.

    `minimum` is the oldest version that can install it. `schema` is the program's database schema,
    and `size` is the program's length in bytes.
    """

    version: str
    minimum: str
    machine: str
    schema: int
    sha256: str
    size: int
    notes: str = ""


class UpdateRecord(msgspec.Struct, frozen=True):
    """The stage of the latest update. `at` is when the stage began, in ms since 1970.

    The final stages are `done`; `failed`, with the reason in `trouble`; `went_back`, if the
    previous program was installed again; and `stays`, if the new program failed but stays
    installed, because the previous program cannot read the bookings made since, or could not be
    put back (`trouble`).
    """

    stage: Stage
    at: int
    version: str = ""  # the release's version; "" until its signature has been checked
    trouble: str = ""


def read_release_key() -> Ed25519PublicKey:
    """Return the public key that this program contains. Raises OperatorError if there is none."""
    file = resources.files("appliance").joinpath("inventory", KEY_FILE)
    try:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(file.read_text("ascii").strip()))
    except (FileNotFoundError, ValueError):
        raise OperatorError(
            "this program has no release key. Install the first release by hand "
            "(docs/operations/upgrade.md)"
        ) from None


def read_manifest(release: IO[bytes], key: Ed25519PublicKey) -> Manifest:
    """Return the signed manifest. `release` may be truncated after the first HEAD_BYTES.

    Raises OperatorError if the release is damaged, or was not signed with the private key that
    belongs to `key`.
    """
    try:
        content, signature = (_read_member(release, f"manifest.{end}") for end in ("json", "sig"))
        key.verify(signature, content)
        return msgspec.json.decode(content, type=Manifest)
    except (InvalidSignature, KeyError, *_DAMAGED):
        raise OperatorError(
            "this file is not a release for this program: its signature is not valid"
        ) from None


def _read_member(release: IO[bytes], name: str) -> bytes:
    size = _open_member(release, name)
    if not 0 <= size <= _MANIFEST_MAX:
        raise KeyError(name)
    content = release.read(size)
    release.read(-size % tarfile.BLOCKSIZE)
    return content


def _open_member(release: IO[bytes], name: str) -> int:
    """Read the header of the next member. Return the size of its content, which follows.

    Extended headers, which are not signed, are refused: tarfile may need half a minute to read one.
    Raises KeyError or one of _DAMAGED if the next member is not the file `name`.
    """
    member = tarfile.TarInfo.frombuf(release.read(tarfile.BLOCKSIZE), "utf-8", "strict")
    if member.name != name or not member.isreg():
        raise KeyError(name)
    return member.size


def copy_program(
    release: IO[bytes], manifest: Manifest, write: Callable[[bytes], object] = lambda _block: None
) -> None:
    """Pass the program in `release`, as `read_manifest` left it, to `write`.

    Raises OperatorError if the program is damaged.
    """
    digest = hashlib.sha256()
    with suppress(KeyError, *_DAMAGED):  # the hash is then wrong
        left = _open_member(release, _PROGRAM_MEMBER)
        is_right = left == manifest.size
        while is_right and (block := release.read(min(left, _BLOCK))):
            digest.update(block)
            write(block)
            left -= len(block)
    if digest.hexdigest() != manifest.sha256:
        raise OperatorError("the release is damaged. Download it again")


def check_manifest(manifest: Manifest, installed: str) -> None:
    """Raise OperatorError if this machine, with version `installed`, cannot install the release."""
    machine = os.uname().machine
    if manifest.machine != machine:
        raise OperatorError(
            f"this release is for {manifest.machine}, but this machine is {machine}"
        )
    if not is_newer(manifest.version, installed):
        raise OperatorError(
            f"this release is {manifest.version}, but {installed} is installed. To go back, see "
            "docs/operations/upgrade.md"
        )
    if is_newer(manifest.minimum, installed):
        raise OperatorError(
            f"this release cannot be installed over {installed}. Install {manifest.minimum} first"
        )


def is_newer(version: str, other: str) -> bool:
    """Whether `version` is newer than `other`. Only the numbers at the start are compared."""
    return _order(version) > _order(other)


def _order(version: str) -> list[int]:
    found = _NUMBERS.match(version)
    return [int(part) for part in found[0].split(".")] if found else [0]


def request_update(root: Path, url: str, now: int) -> None:
    """Ask systemd to install the release at the https address `url`.

    `root` is the data directory. `now` is in ms since 1970.
    """
    write_update_record(root, UpdateRecord("asked", now))
    # Write in place, because systemd watches this file for writes.
    (root / REQUEST).write_text(url, "utf-8")


def read_request(root: Path) -> str:
    """Return the https address of the requested release. Raises OperatorError if there is none."""
    with suppress(OSError, UnicodeDecodeError), acting_as(find_owner(root)):
        # The box's user may put anything there, such as a pipe, for which root must not wait.
        handle = os.open(root / REQUEST, os.O_RDONLY | os.O_NONBLOCK)
        try:
            url = os.read(handle, _ADDRESS_MAX).decode()
        finally:
            os.close(handle)
        if url.startswith("https://"):
            return url
    raise OperatorError("no release is specified. Specify the release's file or https address")


def write_update_record(root: Path, record: UpdateRecord) -> None:
    """Store `record` in the data directory, acting as the user who owns the directory.

    Raises OSError on failure.
    """
    with acting_as(find_owner(root)):
        write_json(root / _RECORD, record)


def read_update_record(root: Path) -> UpdateRecord | None:
    """Return the record of the latest update, or None if there is none."""
    return read_json(root / _RECORD, UpdateRecord)


def is_running(record: UpdateRecord, now: int) -> bool:
    """Whether the recorded update is running, judged by the time since its last stage."""
    return record.stage not in OUTCOMES and abs(now - record.at) < _LONGEST_MS[record.stage]


def conclude(record: UpdateRecord, installed: str, now: int) -> UpdateRecord | None:
    """Return the record with the update's outcome, or None if the update is still running.

    An interrupted update has recorded no outcome. In that case, the outcome is derived from
    `installed`, the running version.
    """
    if record.stage in OUTCOMES:
        return record
    if is_running(record, now):
        return None
    if record.stage == "start" and is_newer(record.version, installed):
        return msgspec.structs.replace(record, stage="went_back")
    if record.stage == "start" or record.version == installed:
        return msgspec.structs.replace(record, stage="done")
    return msgspec.structs.replace(record, stage="failed", trouble=INTERRUPTED)
