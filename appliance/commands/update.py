"""`venuebox update`: replace the program with a signed release, and go back if it fails.

A release is a tar file with three members: `manifest.json`, its Ed25519 signature `manifest.sig`,
and the program. packaging/release.py makes it. The program contains the public key of its releases.

All work on the data directory is done by the program's own commands, which run as its owner.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from appliance.commands.console import Commands, Console, add_command
from appliance.commands.service import BOOTED, UNIT, find_program
from appliance.core.data_directory import choose_data_directory
from appliance.core.errors import OperatorError
from appliance.core.files import sync
from appliance.database.migrate import list_migrations
from appliance.environment import own_version

KEY_FILE = "release.pub"  # the public key in hex; the binary contains it
PROGRAM_MEMBER = "venuebox"
_MANIFEST_MAX = 64 * 1024
_PROGRAM_MAX = 200 << 20
_BLOCK = 1 << 20
_READ_SECONDS = 30.0
_COMMAND_SECONDS = 1800.0  # a backup of a large box on a slow disk
_WATCH_SECONDS = 60.0
_PAUSE_SECONDS = 1.0
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """What a release contains. `schema` is the database schema that the program writes."""

    version: str
    minimum: str
    machine: str
    schema: int
    sha256: str
    size: int
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Service:
    """The running box: how to restart, stop and start it, and whether it is healthy."""

    restart: Callable[[], object]
    stop: Callable[[], object]
    is_healthy: Callable[[], bool]
    watch_seconds: float = _WATCH_SECONDS


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    meaning = "replace the program with a signed release, and go back if it fails"
    parser = add_command(commands, "update", run, meaning, "--data")
    parser.add_argument("release", metavar="FILE|URL", help="the release, or its https address")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Update the program of the systemd service. Only the binary can be updated."""
    key, program = read_release_key(), Path(find_program())
    data = choose_data_directory(arguments.data, console.environ).root
    systemctl = shutil.which("systemctl")
    if systemctl is None or not BOOTED.is_dir() or not UNIT.exists():
        raise OperatorError(
            "only a box that runs as a systemd service can be updated. Otherwise replace the "
            "program yourself (docs/operations/upgrade.md)"
        )
    if not os.access(program.parent, os.W_OK):
        raise OperatorError(f"{program} can only be replaced by its owner. Use sudo")

    def control(verb: str) -> Callable[[], object]:
        return lambda: call([systemctl, verb, UNIT.name])

    def is_healthy() -> bool:
        return is_box_healthy(program, data)

    service = Service(control("restart"), control("stop"), is_healthy)
    with open_release(arguments.release, program.parent) as file:
        update(file, key, program, data, service, own_version())
    return 0


def read_release_key() -> Ed25519PublicKey:
    """Return the public key in this program. Raises OperatorError if it has none."""
    file = resources.files("appliance").joinpath("inventory", KEY_FILE)
    try:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(file.read_text("ascii").strip()))
    except (FileNotFoundError, ValueError):
        raise OperatorError(
            "this program has no release key. Install the first release by hand "
            "(docs/operations/upgrade.md)"
        ) from None


def open_release(source: str, folder: Path) -> IO[bytes]:
    """Open a release file. A URL is first downloaded to `folder`, into a file without a name.

    Raises OperatorError if the URL is not https, does not answer, or gives over 200 MB.
    """
    if "://" not in source:
        return Path(source).open("rb")
    if not source.startswith("https://"):
        raise OperatorError("the address of a release must begin with https://")
    handle = os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    file = os.fdopen(handle, "w+b")
    try:
        with urllib.request.urlopen(source, timeout=_READ_SECONDS) as answer:  # noqa: S310 - https only, see above
            _copy(answer, file, int(answer.headers.get("Content-Length") or 0))
    except OSError as error:
        file.close()
        raise OperatorError(f"the release cannot be downloaded ({error})") from None
    file.seek(0)
    return file


def _copy(source: IO[bytes], target: IO[bytes], expected: int) -> None:
    done = 0
    while block := source.read(_BLOCK):
        done += len(block)
        if done > _PROGRAM_MAX:
            raise OperatorError("the release is larger than 200 MB")
        target.write(block)
        if sys.stderr.isatty():
            percent = 100 * done // max(expected, done)
            print(f"\rdownloading {percent:3d} %", end="\r", file=sys.stderr, flush=True)


def update(
    release: IO[bytes], key: Ed25519PublicKey, program: Path, data: Path, service: Service,
    installed: str,
) -> None:  # fmt: skip
    """Check the release, back up, try it on a copy, replace `program`, restart, and watch.

    `installed` is the version of `program`. A kill at any moment leaves the old program or the new
    one, complete. Raises OperatorError if nothing was changed, or if the new program failed: the
    message says which program is in use.
    """
    with _open_archive(release) as archive:
        manifest = read_manifest(archive, key)
        check_manifest(manifest, installed)
        new = program.with_name(f".{program.name}.new")
        _unpack(archive, manifest, new)
    if manifest.notes:
        print(manifest.notes)
    try:
        print("making a backup", flush=True)
        made = call([program, "backup", "--data", data])
        backup = made.partition(": ")[0]
        print(f"trying {manifest.version} on a copy", flush=True)
        call([new, "verify", backup, "--upgrade", "--data", data])
        previous = program.with_name(f".{program.name}.previous")
        previous.unlink(missing_ok=True)
        previous.hardlink_to(program)
        new.replace(program)
        sync(program.parent)
    finally:
        new.unlink(missing_ok=True)
    print(f"starting {manifest.version} and watching it", flush=True)
    is_well, was_well = _watch(service)
    if not is_well:
        _go_back(program, previous, data, manifest, service, installed, was_well=was_well)
    print(f"{program} is now {manifest.version}")


def _open_archive(release: IO[bytes]) -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=release, mode="r:")
    except tarfile.TarError:
        raise OperatorError("this file is not a release") from None


def read_manifest(archive: tarfile.TarFile, key: Ed25519PublicKey) -> Manifest:
    """Return the signed manifest. Raises OperatorError if the signature is not by `key`."""
    try:
        content, signature = (_member(archive, f"manifest.{end}") for end in ("json", "sig"))
        key.verify(signature, content)
        return msgspec.json.decode(content, type=Manifest)
    except (InvalidSignature, KeyError, tarfile.TarError, msgspec.DecodeError):
        raise OperatorError(
            "this file is not a release for this program: its signature is not valid"
        ) from None


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file.read(_MANIFEST_MAX)


def check_manifest(manifest: Manifest, installed: str) -> None:
    """Raise OperatorError if the release is not newer, or is for other boxes than this one."""
    machine = os.uname().machine
    if manifest.machine != machine:
        raise OperatorError(f"this release is for {manifest.machine}, this machine is {machine}")
    if _order(manifest.version) <= _order(installed):
        raise OperatorError(
            f"this release is {manifest.version}, but {installed} is installed. To go back, see "
            "docs/operations/upgrade.md"
        )
    if _order(manifest.minimum) > _order(installed):
        raise OperatorError(f"install {manifest.minimum} first: this release upgrades from it")


def _order(version: str) -> list[int]:
    found = _NUMBERS.match(version)
    return [int(part) for part in found[0].split(".")] if found else [0]


def _unpack(archive: tarfile.TarFile, manifest: Manifest, target: Path) -> None:
    """Write the program to `target` and sync it. Raises OperatorError if it is damaged."""
    target.unlink(missing_ok=True)
    source = archive.extractfile(PROGRAM_MEMBER)
    digest = hashlib.sha256()
    with open(target, "xb", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
        while source is not None and (block := source.read(_BLOCK)):
            digest.update(block)
            file.write(block)
        os.fchmod(file.fileno(), 0o755)
        file.flush()
        os.fsync(file.fileno())
    if digest.hexdigest() != manifest.sha256:
        target.unlink()
        raise OperatorError("the release is damaged. Download it again")


def call(words: Sequence[str | Path]) -> str:
    """Run a command and return its output. Raises OperatorError with its message if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - the program, its replacement, and systemctl
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=_COMMAND_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OperatorError(f"{words[0]} cannot be run ({error})") from None
    if done.returncode:
        raise OperatorError(done.stderr.strip().removeprefix("venuebox: ") or f"{words[0]} failed")
    return done.stdout.strip()


def is_box_healthy(program: Path, data: Path) -> bool:
    """Ask `venuebox doctor` whether the box runs and answers."""
    done = subprocess.run(  # noqa: S603 - the program itself
        [program, "doctor", "--json", "--data", data], stdin=subprocess.DEVNULL,
        capture_output=True, check=False, timeout=_COMMAND_SECONDS,
    )  # fmt: skip
    try:
        checks = json.loads(done.stdout)["checks"]
    except ValueError:
        return False
    return any(check["name"] == "box" and check["status"] == "ok" for check in checks)


def _watch(service: Service) -> tuple[bool, bool]:
    """Restart the box and watch it. Returns whether it is healthy at the end, and ever was."""
    service.restart()
    until, is_well, was_well = time.monotonic() + service.watch_seconds, False, False
    while time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)
        is_well = service.is_healthy()
        was_well |= is_well
    return is_well, was_well


def _go_back(
    program: Path, previous: Path, data: Path, manifest: Manifest, service: Service,
    installed: str, *, was_well: bool,
) -> None:  # fmt: skip
    """Put the previous program back, and restore the backup if the schema was upgraded.

    If the box was healthy meanwhile, it may have confirmed bookings in the new schema, which the
    previous program cannot read. Then the new program stays. Always raises OperatorError.
    """
    is_upgraded = manifest.schema != list_migrations()[-1][0]
    if is_upgraded and was_well:
        raise OperatorError(
            f"{manifest.version} stopped answering. It stays installed, because {installed} "
            "cannot read the bookings made meanwhile. See venuebox doctor"
        )
    service.stop()
    previous.replace(program)
    sync(program.parent)
    if is_upgraded:
        call([program, "restore", "--latest", "--data", data])
    service.restart()
    raise OperatorError(f"{manifest.version} did not work, so {installed} is in use again")
