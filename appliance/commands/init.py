"""`venuebox init`: make the data directory of a new box from a venue file."""

import argparse
import os
from pathlib import Path

from appliance.actions.apply_venue import apply_venue
from appliance.commands.console import Commands, Console, add_command
from appliance.data_directory import ENVIRONMENTS, DataDirectory, write_file
from appliance.errors import Trouble
from appliance.model.venue_file import UNFURNISHED, VenueFile, parse_venue_file
from appliance.settings import settings_example
from appliance.store.migrate import migrate
from appliance.store.session import session
from appliance.store.setup import begin_setup
from appliance.store.signing_keys import add_signing_key
from appliance.tokens import Keyring

_PRIVATE = 0o077


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = add_command(commands, "init", run, "create a new box from a venue file")
    parser.add_argument("--data", metavar="DIR", help="an empty or new directory")
    parser.add_argument("--venue", metavar="FILE", required=True, help="venue file (TOML)")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Make the box; the venue file is checked before anything is written."""
    text = read_venue_file(arguments.venue)
    directory = console.directory(arguments)
    venue = parse_venue_file(text, console.zones)
    found_box(directory, venue, console)
    print(f"box for {venue.name} created in {directory.root}: start it with venuebox serve")
    return 0


def read_venue_file(name: str) -> str:
    """Its text; Trouble when it cannot be read."""
    try:
        return Path(name).read_text("utf-8")
    except OSError as error:
        raise Trouble(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Trouble(f"{name} is not UTF-8 text") from None


def found_unfurnished_box(directory: DataDirectory, console: Console) -> None:
    """Make a box that waits for its first owner, who says in the portal what it is for.

    Until then nothing can be booked, and nothing but the setup page answers.
    """
    found_box(directory, UNFURNISHED, console, closed=True)


def found_box(
    directory: DataDirectory, venue: VenueFile, console: Console, *, closed: bool = False
) -> None:
    """Make directory, master key, settings and both databases. One venue, two environments."""
    os.umask(_PRIVATE)
    with directory.founding(console.tokens, by_serve=closed):
        if not directory.settings_file.exists():
            write_file(directory.settings_file, settings_example().encode())
        venue_id = None
        for environment in ENVIRONMENTS:
            path = directory.database(environment)
            migrate(path, console.clock, create=True)
            with session(path, console.clock, console.tokens, console.zones) as tx:
                venue_id = apply_venue(tx, venue, venue_id=venue_id)
                add_signing_key(tx, Keyring(directory.master_key(), environment))
                if closed and environment == "live":
                    begin_setup(tx, closed=True)
