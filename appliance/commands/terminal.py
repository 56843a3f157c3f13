"""`venuebox terminal create|pair|list|revoke`: terminals that scan passes at the door."""

import argparse

from appliance.commands import console as cli
from appliance.door import terminals
from appliance.environment import terminal_base, trust_page

_ROLE = "role; each role includes those before it (default: override)"


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "terminal", "terminals at the door")
    for name, run, meaning in (
        ("create", create, "create a terminal without a browser; its token is shown once"),
        ("pair", pair, "print a link and a one-time code that pair a phone"),
    ):
        parser = cli.add_command(group, name, run, meaning, "--data", "--environment", "--json",
                                 name_help="name, such as its place or who carries it")  # fmt: skip
        parser.add_argument("--role", choices=terminals.ROLES, default="override", help=_ROLE)
    cli.add_command(group, "list", show, "list terminals and when they were last seen",
                    "--data", "--environment?", "--json")  # fmt: skip
    cli.add_command(group, "revoke", revoke, "revoke a terminal; its further requests are refused",
                    "--data", id_help="the terminal's id, as `terminal list` shows it")  # fmt: skip


def create(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Create a terminal and print its token."""
    directory = console.directory(arguments)
    with console.transaction(directory, arguments.environment) as tx:
        terminal_id, token = terminals.issue_terminal(tx, arguments.name, arguments.role)
    return cli.print_answer(
        arguments,
        {"id": terminal_id, "token": token},
        f"{token}\nStore it now: it is not shown again. Its id is {terminal_id}.",
    )


def pair(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Start a pairing and print its link and code."""
    directory = console.directory(arguments)
    with console.transaction(directory, arguments.environment) as tx:
        offered = terminals.offer_pairing(tx, arguments.name, arguments.role)
    links = console.links(directory, arguments.environment)
    base = terminal_base(links, console.settings_in_force(directory).server)
    url = offered.link(base)
    text = (
        f"{offered.code}\nThis code works once, within 10 minutes. Open {url} on the phone. "
        f"A device without a browser sends the code to {base}/terminal/v1/pair"
    )
    if trust := trust_page(links, base):
        text += f"\nA device that does not trust this box yet opens {trust} first."
    return cli.print_answer(arguments, {"url": url, "code": offered.code}, text)


def show(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print one line for each terminal."""
    names = ("id", "name", "role", "language", "created_at", "last_seen_at", "revoked_at")
    rows = []
    for environment, reader in console.each_environment(arguments):
        for terminal in terminals.list_terminals(reader):
            described = cli.describe(terminal, *names, environment=environment)
            seen, revoked = described["lastSeenAt"], described["revokedAt"]
            columns = [terminal.id, f"{environment:4}", f"{terminal.role:8}"]
            columns.append(f"seen {seen}" if seen else "never seen")
            columns += [f"revoked {revoked}"] if revoked else []
            rows.append((described, [*columns, terminal.name]))
    return cli.print_rows(arguments, rows)


def revoke(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Revoke the terminal in its environment. Raises OperatorError if the id is unknown."""
    console.change(arguments, "terminal", lambda tx, _: terminals.revoke_terminal(tx, arguments.id))
    print(f"terminal {arguments.id} is revoked")
    return 0
