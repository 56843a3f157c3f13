"""`venuebox terminal create|pair|list|revoke`: what reads passes at the door."""

import argparse
from collections.abc import Iterator
from contextlib import suppress

from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.offer_pairing import offer_pairing
from appliance.actions.revoke_terminal import revoke_terminal
from appliance.clock import format_instant
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
from appliance.data_directory import ENVIRONMENTS
from appliance.environment import EnvironmentName, terminal_base, trust_page
from appliance.errors import NotFound, Trouble
from appliance.model.terminal import ROLES, Terminal
from appliance.store.terminals import list_terminals


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    group = add_group(commands, "terminal", "terminals at the door")
    for name, run, meaning in (
        (
            "create",
            create,
            "create a terminal without a browser; its token is shown once",
        ),
        ("pair", pair, "print a link and a one-time code that pair a phone"),
    ):
        parser = add_command(group, name, run, meaning)
        add_data(parser)
        add_environment(parser)
        add_name(parser, "name, such as its place or who carries it")
        parser.add_argument(
            "--role",
            choices=ROLES,
            default="override",
            help="role; each includes the ones before it (default: override)",
        )
        add_json(parser)
    parser = add_command(group, "list", show, "list terminals and when they were last seen")
    add_data(parser)
    add_environment(parser, required=False)
    add_json(parser)
    parser = add_command(group, "revoke", revoke, "revoke a terminal; its next request is refused")
    add_data(parser)
    parser.add_argument("id", metavar="ID", help="the terminal's id, as `terminal list` shows it")


def create(arguments: argparse.Namespace, console: Console) -> int:
    """Issue a terminal and show its token."""
    directory = console.directory(arguments)
    with console.transaction(directory, arguments.environment) as tx:
        terminal_id, token = issue_terminal(tx, arguments.name, arguments.role)
    if arguments.json:
        print_json({"id": terminal_id, "token": token})
    else:
        print(f"{token}\nStore it now: it is not shown again. Its id is {terminal_id}.")
    return 0


def pair(arguments: argparse.Namespace, console: Console) -> int:
    """Offer a pairing and show its link."""
    directory = console.directory(arguments)
    with console.transaction(directory, arguments.environment) as tx:
        offered = offer_pairing(tx, arguments.name, arguments.role)
    links = console.links(directory, arguments.environment)
    base = terminal_base(links, console.settings_in_force(directory).server)
    url = offered.link(base)
    if arguments.json:
        print_json({"url": url, "code": offered.code})
    else:
        print(
            f"{offered.code}\nWorks once, for 10 minutes: open {url} on the phone. "
            f"A device without a browser sends it to {base}/terminal/v1/pair"
        )
        if trust := trust_page(links, base):
            print(f"A device that does not trust this box yet opens {trust} first.")
    return 0


def show(arguments: argparse.Namespace, console: Console) -> int:
    """One line for each terminal."""
    directory = console.directory(arguments)
    for environment in ENVIRONMENTS:
        if arguments.environment in {None, environment}:
            with console.reading(directory, environment) as reader:
                terminals = list_terminals(reader)
            for terminal in terminals:
                if arguments.json:
                    print_json(_describe(environment, terminal))
                else:
                    print("  ".join(_words(environment, terminal)))
    return 0


def revoke(arguments: argparse.Namespace, console: Console) -> int:
    """Revoke in whichever environment the terminal is."""
    directory = console.directory(arguments)
    for environment in ENVIRONMENTS:
        with suppress(NotFound), console.transaction(directory, environment) as tx:
            revoke_terminal(tx, arguments.id)
            print(f"terminal {arguments.id} is revoked")
            return 0
    raise Trouble(f"there is no terminal {arguments.id}: venuebox terminal list shows them")


def _describe(environment: EnvironmentName, terminal: Terminal) -> dict[str, object]:
    return {
        "id": terminal.id,
        "environment": environment,
        "name": terminal.name,
        "role": terminal.role,
        "language": terminal.language,
        "createdAt": format_instant(terminal.created_at),
        "lastSeenAt": _instant(terminal.last_seen_at),
        "revokedAt": _instant(terminal.revoked_at),
    }


def _words(environment: EnvironmentName, terminal: Terminal) -> Iterator[str]:
    yield terminal.id
    yield f"{environment:4}"
    yield f"{terminal.role:8}"
    seen = _instant(terminal.last_seen_at)
    yield "never seen" if seen is None else f"seen {seen}"
    if terminal.revoked_at is not None:
        yield f"revoked {_instant(terminal.revoked_at)}"
    yield terminal.name


def _instant(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else format_instant(milliseconds)
