"""`venuebox signing-key rotate`: a new key for guest passes, yearly or on a leak."""

import argparse

from appliance.actions.rotate_signing_key import rotate_signing_key
from appliance.commands.console import (
    Commands,
    Console,
    add_command,
    add_data,
    add_environment,
    add_group,
)
from appliance.tokens import Keyring


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    group = add_group(commands, "signing-key", "the key that signs guest passes")
    parser = add_command(group, "rotate", rotate, "create a new key; existing passes stay valid")
    add_data(parser)
    add_environment(parser)
    parser.add_argument(
        "--leaked",
        action="store_true",
        help="the key was stolen: refuse existing passes; guests' links show new ones",
    )


def rotate(arguments: argparse.Namespace, console: Console) -> int:
    """Rotate; a running box signs with the new key from its next pass on."""
    directory = console.directory(arguments)
    keyring = Keyring(directory.master_key(), arguments.environment)
    with console.transaction(directory, arguments.environment) as tx:
        kid = rotate_signing_key(tx, keyring, leaked=arguments.leaked)
    print(f"key {kid} signs from now on")
    if arguments.leaked:
        print("existing passes are refused; guests see the new one at their link")
    return 0
