"""`venuebox clock`: confirm the time by hand if no time server confirms it."""

import argparse
from datetime import datetime

from appliance.clock_gate import confirm_clock
from appliance.commands.console import Commands, Console, add_command, add_group, parse_day
from appliance.core.data_directory import ENVIRONMENTS
from appliance.core.errors import OperatorError
from appliance.staff.audit_log import CONSOLE
from appliance.venue.rows import get_venue


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    group = add_group(commands, "clock", "the box's clock")
    meaning = "confirm that the clock is right after a jump or a long power-off"
    parser = add_command(group, "confirm", confirm, meaning, "--data")
    parser.add_argument(
        "day", metavar="DATE", type=parse_day, help="today's date, such as 2026-11-22"
    )


def confirm(arguments: argparse.Namespace, console: Console) -> int:
    """Confirm the clock, so that expiry resumes; a running box continues at once.

    Requires today's date, so that the operator checks the clock first.
    """
    directory = console.directory(arguments)
    with console.reading(directory, "live") as reader:
        zone = reader.zones.zone(get_venue(reader).time_zone)
    now = datetime.fromtimestamp(console.clock.now() / 1000, zone)
    if now.date() != arguments.day:
        raise OperatorError(
            f"this machine's clock says {now:%Y-%m-%d %H:%M}: set it first (timedatectl set-time), "
            "then confirm it"
        )
    for name in ENVIRONMENTS:
        with console.transaction(directory, name) as tx:
            confirm_clock(tx, CONSOLE)
    print(f"it is {now:%Y-%m-%d %H:%M} at the venue; work that is due by this time starts now")
    return 0
