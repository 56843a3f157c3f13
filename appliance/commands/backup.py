"""`venuebox backup` and `restore`: back up a box, and recover from damage."""

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from appliance.backup import recovery_key
from appliance.backup.archive import open_backup
from appliance.backup.catalogue import list_backups
from appliance.backup.copies import Copier, fetch_latest
from appliance.backup.create import Maker
from appliance.backup.restore import (
    list_catalogues,
    prove,
    restore_blank,
    restore_latest,
    scratch_folder,
)
from appliance.commands.console import Commands, Console, WrongUsage, add_command
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import open_private
from appliance.core.ssh import ensure_key
from appliance.core.text import one_line
from appliance.venue.model import get_venue

_WAYS = ("kit", "target", "verify")
_PHASES = {"copy": "copying", "seal": "writing", "prove": "proving"}


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    meaning = "make a backup and verify it, or show the recovery kit"
    parser = add_command(commands, "backup", run, meaning, "--data")
    parser.add_argument("what", nargs="?", choices=_WAYS, metavar="[kit|target|verify]",
                        help="kit: show the recovery kit; target: copy the latest backup to "
                        "backup.target and test the copy by restoring it; verify: check the backup "
                        "FILE by restoring it to a temporary folder")  # fmt: skip
    parser.add_argument("file", nargs="?", metavar="FILE", help="the backup to verify")
    meaning = "with verify: recovery key (default: the box's own, else prompt)"
    parser.add_argument("--key", metavar="KEY", help=meaning)
    parser.add_argument("--to", metavar="DIR", help="write this backup to another folder")
    parser.add_argument("--html", metavar="FILE", help="write the recovery kit as an HTML page")
    meaning = "type the printed key, to check that it belongs to this box"
    parser.add_argument("--check", action="store_true", help=meaning)
    meaning = "make a new recovery key, for backups made from now on"
    parser.add_argument("--new", action="store_true", help=meaning)
    parser = add_command(commands, "restore", restore, "create a box from a backup", "--data")
    parser.add_argument("file", nargs="?", metavar="FILE", help="the backup")
    meaning = "recovery key; other users can see it in the process list (default: prompt)"
    parser.add_argument("--key", metavar="KEY", help=meaning)
    meaning = "replace a damaged box with its last good backup"
    parser.add_argument("--latest", action="store_true", help=meaning)
    meaning = "fetch the backup from this target: sftp://user@host/folder or s3://bucket/folder"
    parser.add_argument("--from", dest="source", metavar="TARGET", help=meaning)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Create a backup and print its path, or do one of _WAYS. Works while the box runs."""
    if arguments.what and arguments.to:
        raise WrongUsage("--to is only for a new backup. See venuebox backup --help.")
    is_kit, is_verify = arguments.what == "kit", arguments.what == "verify"
    if not is_kit and (arguments.html or arguments.check or arguments.new):
        raise WrongUsage(
            "--html, --check and --new can be used only with `venuebox backup kit`. See venuebox "
            "backup --help."
        )
    if is_verify != bool(arguments.file) or (arguments.key and not is_verify):
        raise WrongUsage("write venuebox backup verify FILE. See venuebox backup --help.")
    if is_verify:
        return _verify(arguments, console)
    directory = console.box(arguments)
    if is_kit:
        return _show_kit(arguments, console, directory)
    if arguments.what == "target":
        return _try_target(console, directory)
    maker = Maker(directory, console.settings(directory), console.clock, console.zones, report)
    path, made = maker.make(to=Path(arguments.to).absolute() if arguments.to else None)
    print(
        f"{path}: {path.stat().st_size / 1_000_000:.1f} MB, verified by a trial restore "
        f"(reservations: {made.reservations})"
    )
    if arguments.to and path.stat().st_dev == directory.root.stat().st_dev:
        print(
            f"{path.parent} is on the same drive as the box. To write to another drive, mount it "
            "there and repeat the command.",
            file=sys.stderr,
        )
    return 0


def restore(arguments: argparse.Namespace, console: Console) -> int:
    """Restore a backup to a directory without a box or, with --latest, to a damaged box."""
    ways = [arguments.file is not None, arguments.latest, arguments.source is not None]
    if not any(ways) or (ways[0] and sum(ways) > 1):
        raise WrongUsage(
            "specify a backup FILE, --from TARGET, or --latest for this box's last good backup. "
            "See venuebox restore --help."
        )
    if not arguments.source:
        return _restore(arguments, console, None)
    directory = console.directory(arguments)
    backup = console.settings(directory).backup
    with scratch_folder(directory) as folder:
        tell = partial(report, "fetching")
        fetched = fetch_latest(arguments.source, backup, directory, folder, tell)
        return _restore(arguments, console, fetched)


def _restore(arguments: argparse.Namespace, console: Console, fetched: Path | None) -> int:
    if arguments.latest:
        return _restore_latest(arguments, console, fetched)
    path = fetched or Path(arguments.file)
    with open_backup(path) as file:  # as root, before the directory's owner is known
        directory = console.directory(arguments)
        key = ask_key(arguments.key, f"recovery key for {one_line(path.name)}:")
        made = restore_blank(
            file, key, directory, console.clock, console.zones, partial(report, "restoring")
        )
    print(
        f"{made.venue} as of {made.made_at} restored to {directory.root} (reservations: "
        f"{made.reservations}). Start it with: venuebox service install --data {directory.root}"
    )
    return 0


def _verify(arguments: argparse.Namespace, console: Console) -> int:
    """Verify a whole backup and print what it contains."""
    with open_backup(Path(arguments.file)) as file:
        directory = console.directory(arguments)
        key = None if arguments.key else recovery_key.find_recovery_key(directory)
        with tempfile.TemporaryDirectory(prefix="venuebox-verify-") as scratch:
            made = prove(
                file, key or ask_key(arguments.key), Path(scratch), console.clock, console.zones,
                partial(report, "proving"),
            )  # fmt: skip
    print(
        f"{one_line(made.venue)}, {made.made_at}, venuebox {made.version}: the backup is complete "
        f"and can be restored (reservations: {made.reservations})"
    )
    return 0


def report(phase: str, done: int, total: int) -> None:
    """Show the progress of a phase on standard error, if that is an interactive console."""
    if sys.stderr.isatty():
        name, percent = _PHASES.get(phase, phase), 100 * done // max(total, 1)
        print(f"\r{name} {percent:3d} %", end="\r", file=sys.stderr, flush=True)


def ask_key(given: str | None, prompt: str = "recovery key:") -> recovery_key.RecoveryKey:
    """Parse `given`, or prompt for the key as one line or as the recovery kit's rows.

    Raises OperatorError if no key is entered, or if it contains a typing error.
    """
    if given is not None:
        return recovery_key.parse_recovery_key(given)
    if sys.stdin.isatty():
        print(prompt, end=" ", file=sys.stderr, flush=True)
    typed = ""
    while len(recovery_key.find_letters(typed)) < recovery_key.LETTERS:
        line = sys.stdin.readline()
        if not line.strip():
            break
        typed += line
    if not typed:
        raise OperatorError("a recovery key is required, but none was entered.")
    return recovery_key.parse_recovery_key(typed)


def _show_kit(arguments: argparse.Namespace, console: Console, directory: DataDirectory) -> int:
    make = recovery_key.ensure_recovery_key
    key = (recovery_key.create_recovery_key if arguments.new else make)(directory)
    if arguments.check:
        if ask_key(None) != key:
            raise OperatorError(
                "this is an old key or the key of a different box. Print a new kit."
            )
        print("this key is correct: it decrypts this box's backups")
        return 0
    if not arguments.html:
        print(*key.rows, "The printable kit: venuebox backup kit --html FILE", sep="\n")
        return 0
    with console.reading(directory, "live") as reader:
        venue = get_venue(reader).name
    page = recovery_key.kit_html(key, venue, console.settings(directory).backup.target)
    with open(arguments.html, "w", encoding="utf-8", opener=open_private) as file:
        os.fchmod(file.fileno(), 0o600)  # an existing file keeps its mode when it is opened
        file.write(page)
    print(f"{arguments.html} written. Print it, then delete the file.")
    return 0


def _try_target(console: Console, directory: DataDirectory) -> int:
    settings = console.settings(directory)
    target = settings.backup.target
    if not target:
        raise OperatorError("backup.target is not set. Set it in settings.toml.")
    if target.startswith("sftp:"):
        print(f"this box's key, for authorized_keys:\n{ensure_key(directory.root)}", flush=True)
    copier = Copier(directory, settings, console.clock, console.zones)
    if copier.next_due() is None:
        raise OperatorError("there is no backup to copy yet. Run venuebox backup, then try again.")
    record = copier.run(must_try=True)
    print(f"{record.file} copied to {target} and verified by a trial restore")
    return 0


def _restore_latest(arguments: argparse.Namespace, console: Console, fetched: Path | None) -> int:
    directory = console.directory(arguments)
    directory.refuse_strangers()
    folders = list_catalogues(directory, console.settings(directory))
    folders = [fetched.parent] if fetched else folders
    if not any(map(list_backups, folders)):
        where = ", ".join(map(str, folders)) or "any folder"
        raise OperatorError(f"there is no backup in {where}. Nothing was changed.")
    key = None if arguments.key else recovery_key.find_recovery_key(directory)
    key = key or ask_key(arguments.key)
    path, aside, made, kept = restore_latest(
        key, directory, folders, console.clock, console.zones, partial(report, "restoring")
    )
    restored = f"everything as of {made.made_at} (reservations: {made.reservations})"
    if kept:
        restored = f"only test.db as of {made.made_at}, because live.db was intact"
    print(
        f"{path.name} restored: {restored}. Start the box with venuebox serve. "
        f"The previous data is kept in {aside}."
    )
    return 0
