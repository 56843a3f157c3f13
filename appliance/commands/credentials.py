"""`venuebox key`, `terminal` and `staff`: API keys, terminal tokens and one-time links.

Staff accounts belong to the venue, so they are stored in the live database only.
"""

import argparse

from appliance.api_keys import READ_ONLY_SCOPES, SCOPES, issue_key, list_keys, revoke_key
from appliance.commands import console as cli
from appliance.core.data_directory import wake_box
from appliance.core.errors import OperatorError
from appliance.database.connection import known
from appliance.door import terminals
from appliance.environment import public_base, staff_base, terminal_base, trust_page
from appliance.staff.accounts import Invitation, create_staff, invite_again
from appliance.staff.model import ROLES, find_by_name
from appliance.staff.two_factor import remove_two_factor

_ROLE = "role; each role includes those before it (default: override)"


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "key", "API keys of partners")
    meaning = "create a key; it is shown once"
    parser = cli.add_command(group, "create", create_key, meaning, "--data", "--environment",
                             "--json", name_help="partner's name")  # fmt: skip
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--scope", action="append", choices=SCOPES, help="scopes (default: all)")
    choice.add_argument("--read-only", action="store_true", help="read scopes only")
    parser.add_argument("--successor-of", metavar="ID", help="id of the key that it replaces")
    cli.add_command(group, "list", show_keys, "list keys without their secret parts",
                    "--data", "--environment?", "--json")  # fmt: skip
    meaning = "revoke a key; further requests with it are refused"
    cli.add_command(group, "revoke", revoke, meaning, "--data", id_help="the key's id")
    group = cli.add_group(commands, "terminal", "terminals at the door")
    for name, run, meaning in (
        ("create", create_terminal, "create a terminal without a browser; its token is shown once"),
        ("pair", pair, "print a link and a one-time code that pair a phone"),
    ):
        parser = cli.add_command(group, name, run, meaning, "--data", "--environment", "--json",
                                 name_help="name, such as its place or who carries it")  # fmt: skip
        parser.add_argument("--role", choices=terminals.ROLES, default="override", help=_ROLE)
    group = cli.add_group(commands, "staff", "staff accounts")
    meaning = "create an account and its one-time link"
    parser = cli.add_command(group, "create", create_person, meaning, "--data", "--json",
                             name_help="the staff member's name")  # fmt: skip
    parser.add_argument("--role", choices=ROLES, required=True, help="role")
    meaning = "print a new link to set a password, and turn off two-factor sign-in"
    parser = cli.add_command(group, "reset", reset, meaning, "--data", "--json")
    parser.add_argument("name", metavar="NAME", help="the staff member's name")


def create_key(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Create an API key and print it."""
    scopes = READ_ONLY_SCOPES if arguments.read_only else arguments.scope or SCOPES
    directory = console.directory(arguments)
    with console.transaction(directory, arguments.environment) as tx:
        properties = arguments.environment, arguments.name, scopes
        issued = issue_key(tx, *properties, successor_of=arguments.successor_of)
    text = f"{issued.key}\nStore it now: it is not shown again. Its id is {issued.id}."
    links = console.links(directory, arguments.environment)
    if arguments.environment == "live" and not links.app_url:
        text += (
            f"\nUntil server.app_url is set, links to guests begin with {links.base}, which opens "
            "only on the venue's network."
        )
    described = {
        "id": issued.id,
        "name": arguments.name,
        "environment": arguments.environment,
        "key": issued.key,
        "scopes": list(issued.scopes),
    }
    return cli.print_answer(arguments, described, text)


def show_keys(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print one line for each key."""
    names = ("id", "name", "prefix", "last_four", "scopes")
    instants = ("created_at", "last_used_at", "expires_at", "revoked_at")
    rows = []
    for environment, reader in console.each_environment(arguments):
        for key in list_keys(reader):
            described = cli.describe(key, *names, *instants, environment=environment)
            used, ends = described["lastUsedAt"], described["revokedAt"] or described["expiresAt"]
            scopes = "all scopes" if key.scopes == SCOPES else " ".join(key.scopes)
            columns = [key.id, f"{environment:4}", f"{key.prefix}…{key.last_four}", scopes]
            columns.append(f"used {used}" if used else "never used")
            if ends:
                state = "revoked" if key.is_revoked(reader.now) else "works until"
                columns.append(f"{state} {ends}")
            rows.append((described, [*columns, key.name]))
    return cli.print_rows(arguments, rows)


def revoke(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Revoke the key in its environment. Raises OperatorError if the id is unknown."""
    # `known` raises NotFound if the key is not in this environment.
    console.change(arguments, "key", lambda tx, _: known(revoke_key(tx, arguments.id) or None))
    print(f"key {arguments.id} is revoked")
    return 0


def create_terminal(arguments: argparse.Namespace, console: cli.Console) -> int:
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
    if not (is_running := wake_box(directory.wakeup_pipe)):
        text += "\nThe box is not running, so its address is a guess: start it, and run this again."
    answer = {"url": url, "code": offered.code, "addressIsGuess": not is_running}
    return cli.print_answer(arguments, answer, text)


def create_person(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Create an account and print its one-time link."""
    with console.transaction(console.directory(arguments), "live") as tx:
        invitation = create_staff(tx, arguments.name, arguments.role)
    return _show_link(arguments, console, invitation)


def reset(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print a new one-time link, and turn off two-factor sign-in.

    The old password works until the link is used.
    """
    with console.transaction(console.directory(arguments), "live") as tx:
        person = find_by_name(tx, arguments.name)
        if person is None:
            raise OperatorError(f"there is no active account named {arguments.name!r}.")
        invitation = invite_again(tx, person.id)
        remove_two_factor(tx, person.id)
    return _show_link(arguments, console, invitation)


def _show_link(arguments: argparse.Namespace, console: cli.Console, invitation: Invitation) -> int:
    directory = console.directory(arguments)
    addresses = console.links(directory, "live"), console.settings_in_force(directory).server
    path = f"/portal/welcome#{invitation.secret}"
    url, outside = f"{staff_base(*addresses)}{path}", public_base(*addresses)
    text = f"{url}\nThis link works once, within 72 hours. Give it to {arguments.name} only."
    if outside:
        text += f"\nFrom outside the venue: {outside}{path}"
    return cli.print_answer(arguments, {"id": invitation.staff_id, "signInUrl": url}, text)
