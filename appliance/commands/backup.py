"""`venuebox backup`, `restore` and `verify`: encrypted backups and the recovery kit."""

import argparse
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from appliance.commands.console import Commands, Console, WrongUsage, add_command
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError
from appliance.core.files import open_private

_ROW = 28  # letters and digits in each of the two rows that a recovery kit shows
_WORDS = {"copy": "copying", "seal": "writing", "prove": "proving"}


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    meaning = "make a proven backup, or show the recovery kit"
    parser = add_command(commands, "backup", run, meaning, "--data")
    parser.add_argument("what", nargs="?", choices=("kit",), metavar="[kit]",
                        help="show the recovery kit")  # fmt: skip
    parser.add_argument("--to", metavar="DIR", help="write to this folder instead, once")
    parser.add_argument("--html", metavar="FILE", help="write the recovery kit as a page to print")
    meaning = "type the printed key and check that it fits"
    parser.add_argument("--check", action="store_true", help=meaning)
    parser = add_command(commands, "restore", restore, "create a box from a backup", "--data")
    parser.add_argument("file", nargs="?", metavar="FILE", help="the backup")
    parser.add_argument("--key", metavar="KEY", help="recovery key (default: prompt)")
    meaning = "replace a damaged box by its last good backup"
    parser.add_argument("--latest", action="store_true", help=meaning)
    meaning = "check a backup by restoring it to one side"
    parser = add_command(commands, "verify", verify, meaning, "--data")
    parser.add_argument("file", metavar="FILE", help="the backup")
    meaning = "recovery key (default: the box's own, else prompt)"
    parser.add_argument("--key", metavar="KEY", help=meaning)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Create a backup and print its path; or show the recovery_key. Works while the box runs."""
    directory = console.directory(arguments)
    _refuse_what_cannot_be_meant(arguments)
    directory.check()
    if arguments.what == "kit":
        return _kit(arguments, console, directory)
    # Imported here, so that other commands start without cryptography and SQLite.
    from appliance.backup.create import Maker  # noqa: PLC0415

    maker = Maker(
        directory, console.settings(directory), console.clock, console.tokens, console.zones, tell
    )
    path, proven = maker.make(to=Path(arguments.to).absolute() if arguments.to else None)
    print(
        f"{path}: {path.stat().st_size // 1_000_000 + 1} MB, verified by a trial restore "
        f"({proven.reservations} reservations)"
    )
    return 0


def restore(arguments: argparse.Namespace, console: Console) -> int:
    """Restore into a directory without a box; with --latest, replace a damaged box."""
    if arguments.latest == (arguments.file is not None):
        raise WrongUsage(
            "give a backup FILE, or --latest for the last good one of this box "
            "(see venuebox restore --help)"
        )
    if arguments.latest:
        return _restore_latest(arguments, console)
    # Imported here, so that other commands start without these.
    from appliance.backup import archive, recovery_key  # noqa: PLC0415 - as above
    from appliance.backup import restore as restoring  # noqa: PLC0415

    with archive.open_backup(Path(arguments.file)) as file:
        header, _ = archive.read_header(file)
        directory = console.directory(arguments)
        typed = ask_key(arguments.key, f"recovery key of {header.venue}:")
        key = recovery_key.parse_recovery_key(typed)
        proven = restoring.restore_blank(
            file, key, directory, console.clock, console.zones, partial(tell, "restoring")
        )
    print(
        f"{header.venue} as of {header.made_at} restored to {directory.root}, "
        f"{proven.reservations} reservations: start it with venuebox serve"
    )
    return 0


def verify(arguments: argparse.Namespace, console: Console) -> int:
    """Print the header of a backup and verify the whole file."""
    from appliance.backup import archive, recovery_key  # noqa: PLC0415 - as above
    from appliance.backup import restore as restoring  # noqa: PLC0415 - as above

    with archive.open_backup(Path(arguments.file)) as file:
        header, _ = archive.read_header(file)
        print(f"{header.venue}, {header.made_at}, venuebox {header.version}", flush=True)
        directory = console.directory(arguments)
        own = None if arguments.key else recovery_key.find_recovery_key(directory)
        if own is None or own.check != header.key_check:
            own = recovery_key.parse_recovery_key(ask_key(arguments.key, "recovery key:"))
        with tempfile.TemporaryDirectory(prefix="venuebox-verify-") as scratch:
            proven = restoring.prove(
                file, own, Path(scratch), console.clock, console.zones, partial(tell, "proving")
            )
    print(f"complete and restorable: {proven.reservations} reservations")
    return 0


def _refuse_what_cannot_be_meant(arguments: argparse.Namespace) -> None:
    if arguments.what == "kit" and arguments.to:
        raise WrongUsage("--to belongs to a backup, --html to the kit (see venuebox backup --help)")
    if arguments.what != "kit" and (arguments.html or arguments.check):
        raise WrongUsage(
            "--html and --check belong to venuebox backup kit (see venuebox backup --help)"
        )


def tell(what: str, done: int, of: int) -> None:
    """Show the progress on a terminal; print nothing to a pipe."""
    if sys.stderr.isatty():
        percent = 100 * done // max(of, 1)
        print(f"\r{_WORDS.get(what, what)} {percent:3d} %", end="\r", file=sys.stderr, flush=True)


def ask_key(given: str | None, prompt: str) -> str:
    """Return `given`, or prompt for the key: one line, or the two rows of the recovery kit.

    Raises OperatorError if no key is entered.
    """
    if given is not None:
        return given
    if sys.stdin.isatty():
        print(prompt, end=" ", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise OperatorError("the recovery key is required: give --key, or type it")
    if sum(map(str.isalnum, line)) == _ROW:
        line += sys.stdin.readline()
    return line


def _kit(arguments: argparse.Namespace, console: Console, directory: DataDirectory) -> int:
    from appliance.backup import recovery_key  # noqa: PLC0415 - as above
    from appliance.venue.rows import get_venue  # noqa: PLC0415 - as above

    key = recovery_key.ensure_recovery_key(directory, console.tokens)
    if arguments.check:
        typed = recovery_key.parse_recovery_key(ask_key(None, "recovery key:"))
        if typed != key:
            raise OperatorError(
                "this key belongs to another box or is an older one: print a new kit"
            )
        print("this kit opens the backups of this box")
        return 0
    with console.reading(directory, "live") as reader:
        venue = get_venue(reader).name
    if arguments.html:
        path = Path(arguments.html)
        with open(path, "w", encoding="utf-8", opener=open_private) as file:
            os.fchmod(file.fileno(), 0o600)  # it contains the key, and may have existed before
            file.write(recovery_key.kit_html(key, venue))
        print(f"{path} written: print it, then delete the file")
        return 0
    language = (console.environ.get("LC_ALL") or console.environ.get("LANG") or "")[:2]
    print(recovery_key.kit_text(key, venue, "fr" if language in {"fr", "ar"} else "en"))
    return 0


def _restore_latest(arguments: argparse.Namespace, console: Console) -> int:
    from appliance.backup import recovery_key  # noqa: PLC0415 - as above
    from appliance.backup import restore as restoring  # noqa: PLC0415 - as above

    directory = console.directory(arguments)
    directory.refuse_strangers()
    key = None if arguments.key else recovery_key.find_recovery_key(directory)
    key = key or recovery_key.parse_recovery_key(ask_key(arguments.key, "recovery key:"))
    shelves = restoring.list_catalogues(directory, console.settings(directory))
    path, aside, proven = restoring.restore_latest(
        key, directory, shelves, console.clock, console.zones, partial(tell, "restoring")
    )
    print(
        f"{path.name} restored, the box is as of {proven.header.made_at} with "
        f"{proven.reservations} reservations: start it with venuebox serve. "
        f"The previous data is kept in {aside}"
    )
    return 0
