"""`venuebox update`: install a signed release of the program, and roll back if the update fails.

To back up and restore the data, this module runs other commands of the program, which act as
the data directory's owner.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from types import MappingProxyType
from typing import IO

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from appliance import program
from appliance.clock import Clock
from appliance.commands.console import Commands, Console, add_command
from appliance.commands.service import BOOTED, UNIT, runs_program
from appliance.core.data_directory import DataDirectory, choose_data_directory
from appliance.core.errors import OperatorError
from appliance.core.files import acting_as, exclusive, find_owner
from appliance.database.integrity import read_schema_number
from appliance.database.migrate import newest_schema
from appliance.environment import own_version
from appliance.release import (
    OUTCOMES,
    Manifest,
    Stage,
    UpdateRecord,
    check_manifest,
    copy_program,
    read_manifest,
    read_release_key,
    read_request,
    write_update_record,
)

_PROGRAM_MAX = 200 << 20
_BLOCK = 1 << 20
_READ_SECONDS = 30.0
_DOWNLOAD_SECONDS = 3600.0
_COMMAND_SECONDS = 1800.0  # enough to back up a large box with a slow disk
_WATCH_SECONDS = 60.0
_PAUSE_SECONDS = 1.0
_LOCK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Service:
    """Functions that restart and stop the box, and that check whether it is healthy."""

    restart: Callable[[], object]
    stop: Callable[[], object]
    is_healthy: Callable[[], bool]
    watch_seconds: float = _WATCH_SECONDS


class Progress:
    """Prints the stages of an update, and records them in the data directory for the portal."""

    def __init__(self, directory: DataDirectory, clock: Clock) -> None:
        self._root = directory.root if directory.holds_a_box() else None
        self._clock = clock
        self._stage: Stage = "asked"
        self.version = ""

    def note(self, stage: Stage, sentence: str, trouble: str = "") -> None:
        """Print `sentence` and record that `stage` begins. Ignores errors such as a full disk."""
        self._stage = stage
        if sentence:
            print(sentence, flush=True)
        if self._root is not None:
            record = UpdateRecord(stage, self._clock.now(), self.version, trouble)
            with suppress(OSError):
                write_update_record(self._root, record)

    def fail(self, trouble: str) -> None:
        """Record that the update failed before it changed anything.

        Does nothing if the update's outcome was already recorded.
        """
        if self._stage not in OUTCOMES:
            self.note("failed", "", trouble)


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    meaning = "install a signed release of the program, and roll back if the update fails"
    parser = add_command(commands, "update", run, meaning, "--data")
    meaning = "the release, or its https address (default: the one that the portal requested)"
    parser.add_argument("release", metavar="FILE|URL", nargs="?", help=meaning)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Update the program of the systemd service. Only an installed program can be updated."""
    directory = choose_data_directory(arguments.data, console.environ)
    systemctl = shutil.which("systemctl")
    if systemctl is None or not BOOTED.is_dir() or not runs_program(program.PLACE):
        raise OperatorError(
            "only a program that venuebox service install has installed can be updated with this "
            "command (docs/operations/upgrade.md)"
        )
    if os.geteuid() != 0:
        raise OperatorError("only root can replace the program. Use sudo")
    progress = Progress(directory, console.clock)
    staging = program.make_staging(program.PLACE)
    with exclusive(staging, _LOCK_SECONDS, "another update is running"):
        try:
            key = read_release_key()
            service = make_service(systemctl, directory.root)
            source = arguments.release or read_request(directory.root)
            progress.note("download", f"reading {source}")
            with open_release(source, staging) as file:
                data, place = directory.root, program.PLACE
                update(file, key, place, data, service, own_version(), progress)
        except (OperatorError, OSError) as error:
            progress.fail(str(error))
            raise OperatorError(str(error)) from None
    return 0


def make_service(systemctl: str, data: Path) -> Service:
    """Return the systemd service of the box in `data`."""

    def control(verb: str) -> Callable[[], object]:
        return lambda: call([systemctl, verb, UNIT.name])

    def is_healthy() -> bool:
        return is_box_healthy(program.current_program(program.PLACE), data)

    return Service(control("restart"), control("stop"), is_healthy)


def open_release(source: str, folder: Path) -> IO[bytes]:
    """Open a release file. A URL is first downloaded to an unnamed file in `folder`.

    Raises OperatorError if the URL is not https or cannot be downloaded, or if the release is
    larger than 200 MB.
    """
    if "://" not in source:
        return Path(source).open("rb")
    if not source.startswith("https://"):
        raise OperatorError("the address of a release must begin with https://")
    handle = os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    file = os.fdopen(handle, "w+b")
    try:
        with urllib.request.urlopen(source, timeout=_READ_SECONDS) as answer:  # noqa: S310 - https only, see above
            _copy(answer, file)
    except OperatorError:
        file.close()
        raise
    except (OSError, HTTPException, ValueError) as error:  # ValueError: a malformed address
        file.close()
        raise OperatorError(f"the release cannot be downloaded ({error})") from None
    file.seek(0)
    return file


def _copy(source: HTTPResponse, target: IO[bytes]) -> None:
    if not source.url.startswith("https://"):
        raise OperatorError(
            f"the address of the release redirects to {source.url}, which is not https"
        )
    expected = int(source.headers.get("Content-Length") or 0)
    done, until = 0, time.monotonic() + _DOWNLOAD_SECONDS
    while block := source.read1(_BLOCK):  # `read` would wait until a whole block has arrived
        done += len(block)
        if done > _PROGRAM_MAX:
            raise OperatorError("the release is larger than 200 MB")
        if time.monotonic() > until:
            raise OperatorError("the download of the release did not finish within an hour")
        target.write(block)
        if sys.stderr.isatty():
            percent = 100 * done // max(expected, done)
            print(f"\rdownloading {percent:3d} %", end="\r", file=sys.stderr, flush=True)


def update(
    release: IO[bytes], key: Ed25519PublicKey, place: Path, data: Path, service: Service,
    installed: str, progress: Progress,
) -> None:  # fmt: skip
    """Install a release, and watch whether the box works with it.

    Checks the release, makes a backup, lets the new program unpack itself in `place`, moves the
    link and restarts the box. `installed` is the version in use. If this process is killed, the
    link leads to the complete old version or to the complete new one. Raises OperatorError if the
    update failed before it changed anything, or if the new program failed. The message says which
    program is in use.
    """
    manifest = read_manifest(release, key)
    check_manifest(manifest, installed)
    progress.version = manifest.version
    new, previous = program.make_staging(place) / "venuebox", (place / "current").resolve()
    try:
        _unpack(release, manifest, new)
        if manifest.notes:
            print(manifest.notes)
        progress.note("backup", "making a backup")
        call([previous / "venuebox", "backup", "--data", data])
        folder = Path(call([new, "service", "unpack", place], TMPDIR=str(new.parent)))
    finally:
        new.unlink(missing_ok=True)
    program.switch(folder, place)
    progress.note("start", f"starting {manifest.version} and watching it")
    is_well, was_well = _watch(service)
    if is_well:
        progress.note("done", f"{manifest.version} is installed")
        return
    if manifest.schema != newest_schema() and was_well:
        progress.note("stays", "")
        raise OperatorError(
            f"{manifest.version} stopped answering. It stays installed, because {installed} cannot "
            "read the bookings made since the update. Run venuebox doctor"
        )
    try:
        _go_back(place, previous, data, service)
    except (OperatorError, OSError) as error:
        trouble = (
            f"{manifest.version} did not work. It stays installed, because {installed} could not "
            f"be put back ({error}). See docs/operations/upgrade.md"
        )
        progress.note("stays", "", trouble)
        raise OperatorError(trouble) from None
    progress.note("went_back", "")
    raise OperatorError(f"{manifest.version} did not work, so {installed} is in use again")


def _unpack(release: IO[bytes], manifest: Manifest, target: Path) -> None:
    """Write the program to `target` and sync the file.

    Raises OperatorError if the program is damaged.
    """
    target.unlink(missing_ok=True)
    with open(target, "xb", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
        copy_program(release, manifest, file.write)
        os.fchmod(file.fileno(), 0o755)
        file.flush()
        os.fsync(file.fileno())


def call(words: Sequence[str | Path], **environ: str) -> str:
    """Run a command and return its output. `environ` are more environment variables for it.

    If the command fails, raises OperatorError with the command's error message.
    """
    done = _run(words, environ)
    if done.returncode:
        raise OperatorError(done.stderr.strip().removeprefix("venuebox: ") or f"{words[0]} failed")
    return done.stdout.strip()


def _run(
    words: Sequence[str | Path], environ: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - the program, its replacement, and systemctl
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=_COMMAND_SECONDS, env={**os.environ, **environ},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OperatorError(f"{words[0]} cannot be run ({error})") from None


def is_box_healthy(installed: Path, data: Path) -> bool:
    """Ask `venuebox doctor` whether the box runs and answers."""
    try:
        checks = json.loads(_run([installed, "doctor", "--json", "--data", data]).stdout)["checks"]
    except (OperatorError, ValueError):
        return False
    return any(check["name"] == "box" and check["status"] == "ok" for check in checks)


def _watch(service: Service) -> tuple[bool, bool]:
    """Restart the box and watch it. Returns (is healthy at the end, was ever healthy)."""
    _restart(service)
    until, is_well, was_well = time.monotonic() + service.watch_seconds, False, False
    while time.monotonic() < until:
        time.sleep(_PAUSE_SECONDS)
        is_well = service.is_healthy()
        was_well |= is_well
    return is_well, was_well


def _go_back(place: Path, previous: Path, data: Path, service: Service) -> None:
    """Restore a backup if a database's schema was upgraded, then move the link back.

    If the power fails between these steps, the new program is still installed, and it upgrades the
    restored data again. In the opposite order, the previous program would already be installed, and
    it would refuse the newer data.

    If the schema is unchanged, the databases are kept, with all bookings made since the backup. Do
    not call this if the new program may have confirmed bookings in a new schema, because the
    restore would remove them. Raises OperatorError or OSError if the previous program cannot be put
    back.
    """
    try:
        service.stop()
        with acting_as(find_owner(data)):  # files that SQLite creates must belong to the owner
            schemas = [read_schema_number(path) for path in DataDirectory(data).databases]
        if max(schemas) > newest_schema():  # this program is the previous one
            call([previous / "venuebox", "restore", "--latest", "--data", data])
        program.switch(previous, place)
    finally:
        _restart(service)


def _restart(service: Service) -> None:
    """Restart the box. Ignores the error of systemctl if the box does not start."""
    with suppress(OperatorError):
        service.restart()
