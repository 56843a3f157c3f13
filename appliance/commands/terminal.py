"""`venuebox terminal create|pair`: what reads passes at the door (door.md)."""

import argparse

from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.offer_pairing import offer_pairing
from appliance.commands.console import (
    Commands,
    Console,
    add_command,
    add_data,
    add_environment,
    add_group,
    add_json,
    add_name,
    print_json,
)


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    group = add_group(commands, "terminal", "terminals at the door")
    for name, run, meaning in (
        ("create", create, "a terminal without a browser; its token is shown this once"),
        ("pair", pair, "a link and a code that make a phone a terminal, once"),
    ):
        parser = add_command(group, name, run, meaning)
        add_data(parser)
        add_environment(parser)
        add_name(parser, "where it stands or who carries it")
        add_json(parser)


def create(arguments: argparse.Namespace, console: Console) -> int:
    """Issue a terminal and show its token."""
    directory = console.directory(arguments)
    with console.transaction(directory, arguments.environment) as tx:
        terminal_id, token = issue_terminal(tx, arguments.name)
    if arguments.json:
        print_json({"id": terminal_id, "token": token})
    else:
        print(f"{token}\nNote it now: it is not shown again. Its id is {terminal_id}.")
    return 0


def pair(arguments: argparse.Namespace, console: Console) -> int:
    """Offer a pairing and show its link."""
    directory = console.directory(arguments)
    with console.transaction(directory, arguments.environment) as tx:
        code = offer_pairing(tx, arguments.name)
    base = console.links(directory, arguments.environment).base
    url = f"{base}/door#pair={code}"
    if arguments.json:
        print_json({"url": url, "code": code})
    else:
        print(
            f"{code}\nWorks once, for 10 minutes: POST it to {base}/terminal/v1/pair. "
            f"The door's page, which comes with a later version, will be {url}"
        )
    return 0
