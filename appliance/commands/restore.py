"""`venuebox restore`: a box out of its backup."""

import argparse
from functools import partial
from pathlib import Path

from appliance.commands.backup import ask_key, tell
from appliance.commands.console import Commands, Console, WrongUsage, add_command, add_data


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = add_command(commands, "restore", run, "create a box from a backup")
    parser.add_argument("file", nargs="?", metavar="FILE", help="the backup")
    add_data(parser)
    parser.add_argument("--key", metavar="KEY", help="recovery key (default: prompt)")
    parser.add_argument(
        "--latest", action="store_true", help="replace a damaged box by its last good backup"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Restore onto a directory without a box; with --latest, in place of a damaged one."""
    if arguments.latest == (arguments.file is not None):
        raise WrongUsage(
            "give a backup FILE, or --latest for the last good one of this box "
            "(see venuebox restore --help)"
        )
    if arguments.latest:
        return _restore_latest(arguments, console)
    from appliance.backup.proof import open_backup  # noqa: PLC0415 - other commands do without
    from appliance.backup.recovery_key import parse_recovery_key  # noqa: PLC0415
    from appliance.backup.restoring import restore_blank  # noqa: PLC0415
    from appliance.backup.sealed import read_header  # noqa: PLC0415

    with open_backup(Path(arguments.file)) as file:
        header, _ = read_header(file)
        directory = console.directory(arguments)
        key = parse_recovery_key(ask_key(arguments.key, f"recovery key of {header.venue}:"))
        proven = restore_blank(
            file, key, directory, console.clock, console.zones, partial(tell, "restoring")
        )
    print(
        f"{header.venue} as of {header.made_at} restored to {directory.root}, "
        f"{proven.reservations} reservations: start it with venuebox serve"
    )
    return 0


def _restore_latest(arguments: argparse.Namespace, console: Console) -> int:
    from appliance.backup.recovery_key import (  # noqa: PLC0415 - as above
        find_recovery_key,
        parse_recovery_key,
    )
    from appliance.backup.restoring import list_shelves, restore_latest  # noqa: PLC0415

    directory = console.directory(arguments)
    directory.refuse_strangers()
    key = None if arguments.key else find_recovery_key(directory)
    key = key or parse_recovery_key(ask_key(arguments.key, "recovery key:"))
    shelves = list_shelves(directory, console.settings(directory))
    path, aside, proven = restore_latest(
        key, directory, shelves, console.clock, console.zones, partial(tell, "restoring")
    )
    print(
        f"{path.name} restored, the box is as of {proven.header.made_at} with "
        f"{proven.reservations} reservations: start it with venuebox serve. "
        f"The previous data is kept in {aside}"
    )
    return 0
