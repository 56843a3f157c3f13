"""`venuebox venue apply`: change the venue, tables and slots to match a file."""

import argparse
from contextlib import ExitStack

from appliance.actions.apply_venue import apply_venue
from appliance.commands.console import Commands, Console, add_command, add_data, add_group
from appliance.commands.init import read_venue_file
from appliance.data_directory import ENVIRONMENTS
from appliance.model.venue_file import parse_venue_file


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    group = add_group(commands, "venue", "the venue, its tables and its slots")
    parser = add_command(group, "apply", run, "change the venue, tables and slots to match a file")
    add_data(parser)
    parser.add_argument("file", metavar="FILE", help="venue file (TOML)")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Apply to both environments; the running box shows it on its next answer."""
    text = read_venue_file(arguments.file)
    directory = console.directory(arguments)
    venue = parse_venue_file(text, console.zones)
    with ExitStack() as both:  # what one of them refuses is done in neither
        for environment in ENVIRONMENTS:
            apply_venue(both.enter_context(console.transaction(directory, environment)), venue)
    print(f"{venue.name}: {len(venue.tables)} tables and {len(venue.slots)} slots applied")
    return 0
