"""`venuebox staff create`: a person of the house, and the link on which the password is set."""

import argparse

from appliance.actions.create_staff import create_staff
from appliance.commands.console import (
    Commands,
    Console,
    add_command,
    add_data,
    add_group,
    add_json,
    add_name,
    print_json,
)
from appliance.model.staff import ROLES


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    group = add_group(commands, "staff", "the people of the house")
    parser = add_command(group, "create", create, "invite a person; the link works once")
    add_data(parser)
    add_name(parser, "the person's name")
    parser.add_argument("--role", choices=ROLES, required=True, help="what the person may do")
    add_json(parser)


def create(arguments: argparse.Namespace, console: Console) -> int:
    """Create and show the link. Staff belong to the house: they are kept in the live database."""
    directory = console.directory(arguments)
    with console.transaction(directory, "live") as tx:
        invitation = create_staff(tx, arguments.name, arguments.role)
    url = f"{console.links(directory, 'live').base}/portal/welcome#{invitation.secret}"
    if arguments.json:
        print_json({"id": invitation.staff_id, "signInUrl": url})
    else:
        print(f"{url}\nWorks once, for 72 hours. Give it to {arguments.name} alone.")
    return 0
