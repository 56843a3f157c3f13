"""`venuebox key` (interface, section 5) and `venuebox signing-key` (guest passes)."""

import argparse

from appliance.api_keys import READ_ONLY_SCOPES, SCOPES, issue_key, list_keys, revoke_key
from appliance.commands import console as cli
from appliance.core.tokens import Keyring
from appliance.database.connection import known
from appliance.door.guest_pass import rotate_signing_key


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "key", "API keys of partners")
    meaning = "create a key; it is shown once"
    parser = cli.add_command(group, "create", create, meaning, "--data", "--environment", "--json",
                             name_help="partner's name")  # fmt: skip
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--scope", action="append", choices=SCOPES, help="scopes (default: all)")
    choice.add_argument("--read-only", action="store_true", help="read scopes only")
    parser.add_argument("--successor-of", metavar="ID", help="id of the key that it replaces")
    cli.add_command(group, "list", show, "list keys without their secret parts",
                    "--data", "--environment?", "--json")  # fmt: skip
    cli.add_command(group, "revoke", revoke, "revoke a key; further requests with it are refused",
                    "--data", id_help="the key's id")  # fmt: skip
    group = cli.add_group(commands, "signing-key", "the key that signs guest passes")
    meaning = "create a new key; existing passes stay valid"
    parser = cli.add_command(group, "rotate", rotate, meaning, "--data", "--environment")
    meaning = "refuse existing passes, because the key was stolen; guests' links show new passes"
    parser.add_argument("--leaked", action="store_true", help=meaning)


def create(arguments: argparse.Namespace, console: cli.Console) -> int:
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


def show(arguments: argparse.Namespace, console: cli.Console) -> int:
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


def rotate(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Create a new signing key. A running box signs new passes with it."""
    directory = console.directory(arguments)
    keyring = Keyring(directory.master_key(), arguments.environment)
    with console.transaction(directory, arguments.environment) as tx:
        kid = rotate_signing_key(tx, keyring, leaked=arguments.leaked)
    print(f"new passes are signed with key {kid} from now on")
    if arguments.leaked:
        print("existing passes are refused; guests find a new pass at their link")
    return 0
