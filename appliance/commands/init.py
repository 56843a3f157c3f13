"""`venuebox init` creates a box from a venue file; `venuebox venue apply` changes the venue."""

import argparse
import os
from contextlib import ExitStack

from appliance.commands.console import Commands, Console, add_command, add_group, read_argument
from appliance.core.data_directory import ENVIRONMENTS, DataDirectory
from appliance.core.edited_files import decode_edited
from appliance.core.files import atomic_write
from appliance.core.saved_settings import settings_example
from appliance.core.tokens import Keyring
from appliance.database.integrity import session
from appliance.database.migrate import migrate
from appliance.door.guest_pass import add_signing_key
from appliance.staff.accounts import begin_setup
from appliance.venue.edit import apply_venue
from appliance.venue.venue_file import UNFURNISHED, VenueFile, parse_venue_file

_PRIVATE = 0o077


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    parser = add_command(commands, "init", run, "create a new box from a venue file")
    parser.add_argument("--data", metavar="DIR", help="an empty or new directory")
    parser.add_argument("--venue", metavar="FILE", required=True, help="venue file (TOML)")
    group = add_group(commands, "venue", "the venue, its tables and its slots")
    meaning = "change the venue, tables and slots to match a file"
    parser = add_command(group, "apply", apply, meaning, "--data")
    parser.add_argument("file", metavar="FILE", help="venue file (TOML)")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Create the box. The venue file is checked before anything is written."""
    text = read_venue_file(arguments.venue)
    directory = console.directory(arguments)
    venue = parse_venue_file(text, console.zones)
    found_box(directory, venue, console)
    print(f"box for {venue.name} created in {directory.root}. Start it with venuebox serve.")
    return 0


def apply(arguments: argparse.Namespace, console: Console) -> int:
    """Change the venue in both environments to match the file.

    A running box uses the changed venue from the next request on.
    """
    text = read_venue_file(arguments.file)
    directory = console.directory(arguments)
    venue = parse_venue_file(text, console.zones)
    with ExitStack() as both:  # if one of the changes fails, none is committed
        for environment in ENVIRONMENTS:
            apply_venue(both.enter_context(console.transaction(directory, environment)), venue)
    print(f"{venue.name} applied. Tables: {len(venue.tables)}, slots: {len(venue.slots)}")
    return 0


def read_venue_file(name: str) -> str:
    """Return the text of the file. Raises OperatorError if it cannot be read or is not UTF-8."""
    return decode_edited(read_argument(name), name)


def found_unfurnished_box(directory: DataDirectory, console: Console) -> None:
    """Create a box without an owner. The first owner sets it up in the portal.

    Until then, nothing can be booked and only the setup page is served.
    """
    found_box(directory, UNFURNISHED, console, closed=True)


def found_box(
    directory: DataDirectory, venue: VenueFile, console: Console, *, closed: bool = False
) -> None:
    """Create the directory, the master key, the settings and both environments' databases."""
    os.umask(_PRIVATE)
    with directory.founding(console.tokens, by_serve=closed):
        if not directory.settings_file.exists():
            atomic_write(directory.settings_file, settings_example().encode())
        venue_id = None
        for environment in ENVIRONMENTS:
            path = directory.database(environment)
            migrate(path, create=True)
            with session(path, console.clock, console.tokens, console.zones) as tx:
                venue_id = apply_venue(tx, venue, venue_id=venue_id)
                add_signing_key(tx, Keyring(directory.master_key(), environment))
                if closed and environment == "live":
                    begin_setup(tx, closed=True)
