"""`venuebox verify`: whether a backup is good."""

import argparse
import tempfile
from functools import partial
from pathlib import Path

from appliance.commands.backup import ask_key, tell
from appliance.commands.console import Commands, Console, add_command, add_data


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = add_command(commands, "verify", run, "check a backup by restoring it to one side")
    parser.add_argument("file", metavar="FILE", help="the backup")
    add_data(parser)
    parser.add_argument(
        "--key", metavar="KEY", help="recovery key (default: the box's own, else prompt)"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """What the file says of itself, and whether every byte of it is good."""
    from appliance.backup.proof import open_backup, prove  # noqa: PLC0415 - others do without
    from appliance.backup.recovery_key import (  # noqa: PLC0415
        find_recovery_key,
        parse_recovery_key,
    )
    from appliance.backup.sealed import read_header  # noqa: PLC0415

    with open_backup(Path(arguments.file)) as file:
        header, _ = read_header(file)
        print(f"{header.venue}, {header.made_at}, venuebox {header.version}", flush=True)
        directory = console.directory(arguments)
        own = None if arguments.key else find_recovery_key(directory)
        if own is None or own.check != header.key_check:
            own = parse_recovery_key(ask_key(arguments.key, "recovery key:"))
        with tempfile.TemporaryDirectory(prefix="venuebox-verify-") as scratch:
            proven = prove(
                file, own, Path(scratch), console.clock, console.zones, partial(tell, "proving")
            )
    print(f"whole and restorable: {proven.reservations} reservations")
    return 0
