"""`venuebox backup`: a proven copy of everything, in one sealed file; and the recovery kit."""

import argparse
import os
import sys
from pathlib import Path

from appliance.commands.console import Commands, Console, WrongUsage, add_command, add_data
from appliance.data_directory import DataDirectory
from appliance.errors import Trouble

_ROW = 28  # letters and digits in each of the two rows that a recovery kit shows
_WORDS = {"copy": "copying", "seal": "writing", "prove": "proving"}


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = add_command(
        commands,
        "backup",
        run,
        "make a proven backup, or show the recovery kit",
    )
    parser.add_argument(
        "what", nargs="?", choices=("kit",), metavar="[kit]", help="show the recovery kit"
    )
    add_data(parser)
    parser.add_argument("--to", metavar="DIR", help="write to this folder instead, once")
    parser.add_argument("--html", metavar="FILE", help="write the recovery kit as a page to print")
    parser.add_argument(
        "--check", action="store_true", help="type the printed key and check that it fits"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """The backup's name; or the kit. Works while the box runs."""
    directory = console.directory(arguments)
    _refuse_what_cannot_be_meant(arguments)
    directory.check()
    if arguments.what == "kit":
        return _kit(arguments, console, directory)
    # Encryption and SQLite come along: the other commands start without them.
    from appliance.backup.making import Maker  # noqa: PLC0415

    maker = Maker(
        directory, console.settings(directory), console.clock, console.tokens, console.zones, tell
    )
    path, proven = maker.make(to=Path(arguments.to).absolute() if arguments.to else None)
    print(
        f"{path}: {path.stat().st_size // 1_000_000 + 1} MB, restored once and found whole "
        f"({proven.reservations} reservations)"
    )
    return 0


def _refuse_what_cannot_be_meant(arguments: argparse.Namespace) -> None:
    if arguments.what == "kit" and arguments.to:
        raise WrongUsage("--to belongs to a backup, --html to the kit (see venuebox backup --help)")
    if arguments.what != "kit" and (arguments.html or arguments.check):
        raise WrongUsage(
            "--html and --check belong to venuebox backup kit (see venuebox backup --help)"
        )


def tell(what: str, done: int, of: int) -> None:
    """Show the progress on a console, and nothing in a pipe."""
    if sys.stderr.isatty():
        percent = 100 * done // max(of, 1)
        print(f"\r{_WORDS.get(what, what)} {percent:3d} %", end="\r", file=sys.stderr, flush=True)


def ask_key(given: str | None, prompt: str) -> str:
    """The key as given, or typed, in one line or in the two of the recovery kit.

    On a console nothing else may read it.
    """
    if given is not None:
        return given
    if sys.stdin.isatty():
        print(prompt, end=" ", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise Trouble("the recovery key is required: give --key, or type it")
    if sum(map(str.isalnum, line)) == _ROW:
        line += sys.stdin.readline()
    return line


def _kit(arguments: argparse.Namespace, console: Console, directory: DataDirectory) -> int:
    from appliance.backup.kit import kit_html, kit_text  # noqa: PLC0415
    from appliance.backup.recovery_key import (  # noqa: PLC0415
        ensure_recovery_key,
        parse_recovery_key,
    )
    from appliance.store.venue import get_venue  # noqa: PLC0415

    key = ensure_recovery_key(directory, console.tokens)
    if arguments.check:
        typed = parse_recovery_key(ask_key(None, "recovery key:"))
        if typed != key:
            raise Trouble("this is another box's key or an older one: print a new kit")
        print("this kit opens the backups of this box")
        return 0
    with console.reading(directory, "live") as reader:
        venue = get_venue(reader).name
    if arguments.html:
        path = Path(arguments.html)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # refuses a folder
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, 0o600)  # the key is in it, and the file may have been there
            file.write(kit_html(key, venue))
        print(f"{path} written: print it, then delete the file")
        return 0
    language = (console.environ.get("LC_ALL") or console.environ.get("LANG") or "")[:2]
    print(kit_text(key, venue, "fr" if language in {"fr", "ar"} else "en"))
    return 0
