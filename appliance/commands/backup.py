"""`venuebox backup`, `restore` and `verify`: back up a box, and recover from damage."""

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from appliance.backup import recovery_key
from appliance.backup.archive import open_backup, read_header
from appliance.backup.catalogue import list_backups, record_kit
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

_ROW = 28  # characters in each of the two rows of the recovery key, without separators
_PHASES = {"copy": "copying", "seal": "writing", "prove": "proving"}


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    meaning = "make a backup and verify it, or show the recovery kit"
    parser = add_command(commands, "backup", run, meaning, "--data")
    parser.add_argument("what", nargs="?", choices=("kit", "target"), metavar="[kit|target]",
                        help="kit: show the recovery kit; target: copy the latest backup to "
                        "backup.target and test the copy by restoring it")  # fmt: skip
    parser.add_argument("--to", metavar="DIR", help="write this backup to another folder")
    parser.add_argument("--html", metavar="FILE", help="write the recovery kit as an HTML page")
    meaning = "type the printed key, to check that it belongs to this box"
    parser.add_argument("--check", action="store_true", help=meaning)
    parser = add_command(commands, "restore", restore, "create a box from a backup", "--data")
    parser.add_argument("file", nargs="?", metavar="FILE", help="the backup")
    meaning = "recovery key; other users can see it in the process list (default: prompt)"
    parser.add_argument("--key", metavar="KEY", help=meaning)
    meaning = "replace a damaged box with its last good backup"
    parser.add_argument("--latest", action="store_true", help=meaning)
    meaning = "fetch the backup from this target: sftp://user@host/folder or s3://bucket/folder"
    parser.add_argument("--from", dest="source", metavar="TARGET", help=meaning)
    meaning = "check a backup by restoring it to a temporary folder"
    parser = add_command(commands, "verify", verify, meaning, "--data")
    parser.add_argument("file", metavar="FILE", help="the backup")
    meaning = "also upgrade the temporary copy to this version's database schema"
    parser.add_argument("--upgrade", action="store_true", help=meaning)
    meaning = "recovery key (default: the box's own, else prompt)"
    parser.add_argument("--key", metavar="KEY", help=meaning)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Create a backup and print its path, or show the recovery kit. Works while the box runs."""
    is_kit = arguments.what == "kit"
    if arguments.what and arguments.to:
        raise WrongUsage(
            "--to cannot be used with `venuebox backup kit` or `venuebox backup target`. See "
            "venuebox backup --help."
        )
    if not is_kit and (arguments.html or arguments.check):
        raise WrongUsage(
            "--html and --check can be used only with `venuebox backup kit`. See venuebox backup "
            "--help."
        )
    directory = console.box(arguments)
    if is_kit:
        return _show_kit(arguments, console, directory)
    if arguments.what == "target":
        return _try_target(console, directory)
    maker = Maker(
        directory, console.settings(directory), console.clock, console.tokens, console.zones, report
    )
    path, proven = maker.make(to=Path(arguments.to).absolute() if arguments.to else None)
    print(
        f"{path}: {path.stat().st_size // 1_000_000 + 1} MB, verified by a trial restore "
        f"({proven.reservations} reservations)"
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
        return _restore(
            arguments, console, fetch_latest(arguments.source, backup, directory, folder)
        )


def _restore(arguments: argparse.Namespace, console: Console, fetched: Path | None) -> int:
    if arguments.latest:
        return _restore_latest(arguments, console, fetched)
    with open_backup(fetched or Path(arguments.file)) as file:
        header, _ = read_header(file)
        directory = console.directory(arguments)
        key = ask_key(arguments.key, f"recovery key of {one_line(header.venue)}:")
        proven = restore_blank(
            file, key, directory, console.clock, console.zones, partial(report, "restoring")
        )
    print(
        f"{header.venue} as of {header.made_at} restored to {directory.root} with "
        f"{proven.reservations} reservations. Start it with venuebox serve."
    )
    return 0


def verify(arguments: argparse.Namespace, console: Console) -> int:
    """Print the backup's header and verify the whole file.

    With --upgrade, also check that this version of the program can read the box's settings and
    upgrade the restored databases.
    """
    with open_backup(Path(arguments.file)) as file:
        header, _ = read_header(file)
        line = f"{header.venue}, {header.made_at}, venuebox {header.version}"
        print(one_line(line), flush=True)  # nothing has been authenticated yet
        directory = console.directory(arguments)
        key = None if arguments.key else recovery_key.find_recovery_key(directory)
        if key is None or key.check != header.key_check:
            key = ask_key(arguments.key)
        with tempfile.TemporaryDirectory(prefix="venuebox-verify-") as scratch:
            proven = prove(
                file,
                key,
                Path(scratch),
                console.clock,
                console.zones,
                partial(report, "proving"),
                upgrade=arguments.upgrade,
            )
    if arguments.upgrade:
        console.settings(directory)
    print(f"the backup is complete and can be restored: {proven.reservations} reservations")
    return 0


def report(phase: str, done: int, total: int) -> None:
    """Show the progress of a phase on standard error, if that is an interactive console."""
    if sys.stderr.isatty():
        name, percent = _PHASES.get(phase, phase), 100 * done // max(total, 1)
        print(f"\r{name} {percent:3d} %", end="\r", file=sys.stderr, flush=True)


def ask_key(given: str | None, prompt: str = "recovery key:") -> recovery_key.RecoveryKey:
    """Parse `given`, or prompt for the key as one line or as the recovery kit's two rows.

    Raises OperatorError if no key is entered, or if it contains a typing error.
    """
    if given is not None:
        return recovery_key.parse_recovery_key(given)
    if sys.stdin.isatty():
        print(prompt, end=" ", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise OperatorError("a recovery key is required, but none was entered.")
    if sum(map(str.isalnum, line)) == _ROW:
        line += sys.stdin.readline()
    return recovery_key.parse_recovery_key(line)


def _show_kit(arguments: argparse.Namespace, console: Console, directory: DataDirectory) -> int:
    key = recovery_key.ensure_recovery_key(directory, console.tokens)
    if arguments.check:
        if ask_key(None) != key:
            raise OperatorError(
                "this is an old key or the key of a different box. Print a new kit."
            )
        record_kit(directory.root, key)
        print("this key is correct: it decrypts this box's backups")
        return 0
    with console.reading(directory, "live") as reader:
        venue = get_venue(reader).name
    record_kit(directory.root, key)
    if arguments.html:
        with open(arguments.html, "w", encoding="utf-8", opener=open_private) as file:
            os.fchmod(file.fileno(), 0o600)  # an existing file keeps its mode when it is opened
            file.write(recovery_key.kit_html(key, venue))
        print(f"{arguments.html} written. Print it, then delete the file.")
        return 0
    language = (console.environ.get("LC_ALL") or console.environ.get("LANG") or "")[:2]
    print(recovery_key.kit_text(key, venue, "fr" if language in {"fr", "ar"} else "en"))
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
    path, aside, proven, kept = restore_latest(
        key, directory, folders, console.clock, console.zones, partial(report, "restoring")
    )
    restored = f"{proven.reservations} reservations as of {proven.header.made_at}"
    if kept:
        restored = f"only test.db as of {proven.header.made_at}, because live.db was intact"
    print(
        f"{path.name} restored: {restored}. Start the box with venuebox serve. "
        f"The previous data is kept in {aside}."
    )
    return 0
