"""`venuebox key create|list|revoke`: the keys of partners (interface, section 5)."""

import argparse
from collections.abc import Iterator

from appliance.actions.issue_key import issue_key
from appliance.actions.revoke_key import revoke_key
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
from appliance.environment import EnvironmentName
from appliance.errors import Trouble
from appliance.model.api_key import READ_ONLY_SCOPES, SCOPES, ApiKey
from appliance.store.keys import list_keys


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    group = add_group(commands, "key", "API keys of partners")
    create_parser = add_command(group, "create", create, "create a key; it is shown once")
    add_data(create_parser)
    add_environment(create_parser)
    add_name(create_parser, "name of the partner")
    which = create_parser.add_mutually_exclusive_group()
    which.add_argument("--scope", action="append", choices=SCOPES, help="scopes (default: all)")
    which.add_argument("--read-only", action="store_true", help="read scopes only")
    create_parser.add_argument(
        "--successor-of", metavar="ID", help="the key that this one replaces"
    )
    add_json(create_parser)
    list_parser = add_command(group, "list", show, "list keys, without their secret part")
    add_data(list_parser)
    add_environment(list_parser, required=False)
    add_json(list_parser)
    revoke_parser = add_command(group, "revoke", revoke, "revoke a key, from its next request on")
    add_data(revoke_parser)
    revoke_parser.add_argument("id", metavar="ID", help="the key's id")


def create(arguments: argparse.Namespace, console: Console) -> int:
    """Issue a key and show it."""
    scopes = READ_ONLY_SCOPES if arguments.read_only else arguments.scope or SCOPES
    with console.transaction(console.directory(arguments), arguments.environment) as tx:
        issued = issue_key(
            tx,
            arguments.environment,
            arguments.name,
            scopes,
            successor_of=arguments.successor_of,
        )
    if arguments.json:
        print_json({"id": issued.id, "key": issued.key, "scopes": list(issued.scopes)})
    else:
        print(f"{issued.key}\nStore it now: it is not shown again. Its id is {issued.id}.")
    return 0


def show(arguments: argparse.Namespace, console: Console) -> int:
    """One line for each key."""
    directory = console.directory(arguments)
    for environment in ENVIRONMENTS:
        if arguments.environment in {None, environment}:
            with console.reading(directory, environment) as reader:
                keys, now = list_keys(reader), reader.now
            for key in keys:
                if arguments.json:
                    print_json(_describe(environment, key))
                else:
                    print("  ".join(_words(environment, key, now)))
    return 0


def revoke(arguments: argparse.Namespace, console: Console) -> int:
    """Revoke in whichever environment the key is."""
    directory = console.directory(arguments)
    for environment in ENVIRONMENTS:
        with console.transaction(directory, environment) as tx:
            found = revoke_key(tx, arguments.id)
        if found:
            print(f"key {arguments.id} is revoked")
            return 0
    raise Trouble(f"there is no key {arguments.id}: venuebox key list shows them")


def _describe(environment: EnvironmentName, key: ApiKey) -> dict[str, object]:
    return {
        "id": key.id,
        "environment": environment,
        "name": key.name,
        "prefix": key.prefix,
        "lastFour": key.last_four,
        "scopes": list(key.scopes),
        "createdAt": format_instant(key.created_at),
        "lastUsedAt": None if key.last_used_at is None else format_instant(key.last_used_at),
        "revokedAt": None if key.revoked_at is None else format_instant(key.revoked_at),
    }


def _words(environment: EnvironmentName, key: ApiKey, now: int) -> Iterator[str]:
    yield key.id
    yield f"{environment:4}"
    yield f"{key.prefix}…{key.last_four}"
    yield "all scopes" if key.scopes == SCOPES else " ".join(key.scopes)
    yield "never used" if key.last_used_at is None else f"used {format_instant(key.last_used_at)}"
    if key.revoked_at is not None:
        ends = "revoked" if key.is_revoked(now) else "works until"
        yield f"{ends} {format_instant(key.revoked_at)}"
    yield key.name
