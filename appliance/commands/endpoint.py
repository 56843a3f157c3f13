"""`venuebox endpoint …`: the webhook endpoints of partners, as their owner sees to them."""

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.actions.activate_endpoint import activate_endpoint
from appliance.actions.deactivate_endpoint import deactivate_endpoint
from appliance.actions.roll_secret import revoke_old_secret, roll_secret
from appliance.actions.trust_receiver import trust_receiver
from appliance.clock import format_instant
from appliance.commands.console import (
    Command,
    Commands,
    Console,
    add_command,
    add_data,
    add_environment,
    add_group,
    add_json,
    print_json,
)
from appliance.data_directory import ENVIRONMENTS
from appliance.environment import EnvironmentName
from appliance.errors import NotFound, Trouble
from appliance.model.endpoint import Endpoint, parse_ca, parse_pin
from appliance.store.connection import Transaction
from appliance.store.endpoints import get_endpoint, list_endpoints
from appliance.tokens import Keyring
from appliance.webhooks.egress import make_guard


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    group = add_group(commands, "endpoint", "webhook endpoints of partners")
    lister = add_command(group, "list", show, "list endpoints and their state")
    add_data(lister)
    add_environment(lister, required=False)
    add_json(lister)
    _add(group, "roll", roll, "issue a new secret; the old one keeps signing for 24 hours")
    _add(group, "revoke-old-secret", revoke, "stop signing with the old secret now")
    _add(group, "activate", activate, "activate an endpoint again (at most 5 are active)")
    _add(group, "deactivate", deactivate, "deactivate an endpoint and cancel its queued deliveries")
    truster = _add(group, "trust", trust, "choose what its TLS certificate is checked against")
    which = truster.add_mutually_exclusive_group(required=True)
    which.add_argument("--ca", metavar="FILE", help="only the authorities in this PEM file")
    which.add_argument("--pin", metavar="SHA256", help="only this certificate, by fingerprint")
    which.add_argument("--system", action="store_true", help="the authorities this machine trusts")


def _add(group: Commands, name: str, run: Command, meaning: str) -> argparse.ArgumentParser:
    parser = add_command(group, name, run, meaning)
    add_data(parser)
    parser.add_argument("id", metavar="ID", help="the endpoint's id")
    add_json(parser)
    return parser


def show(arguments: argparse.Namespace, console: Console) -> int:
    """One line for each endpoint, deactivated ones too."""
    for environment in ENVIRONMENTS:
        if arguments.environment in {None, environment}:
            with console.reading(console.directory(arguments), environment) as reader:
                endpoints, now = list_endpoints(reader), reader.now
            for endpoint in endpoints:
                if arguments.json:
                    print_json(_describe(environment, endpoint, now))
                else:
                    print("  ".join(_words(environment, endpoint)))
    return 0


def roll(arguments: argparse.Namespace, console: Console) -> int:
    """Show the new secret, this once."""
    master_key = console.directory(arguments).master_key()
    with _endpoint(arguments, console) as (tx, environment):
        secret = roll_secret(tx, Keyring(master_key, environment), arguments.id)
        until = get_endpoint(tx, arguments.id).previous_secret_expires_at or 0
    if arguments.json:
        signs_until = format_instant(until)
        print_json({"id": arguments.id, "secret": secret, "oldSecretSignsUntil": signs_until})
    else:
        print(
            f"{secret}\nNote it now: it is not shown again. "
            f"The old one signs too until {format_instant(until)}."
        )
    return 0


def revoke(arguments: argparse.Namespace, console: Console) -> int:
    """Forget the secret before the present one."""
    with _endpoint(arguments, console) as (tx, _):
        revoke_old_secret(tx, arguments.id)
    return _answer(arguments, console, "signs with its new secret only")


def activate(arguments: argparse.Namespace, console: Console) -> int:
    """Look at the URL again, then switch it on."""
    with _endpoint(arguments, console) as (tx, environment):
        url = get_endpoint(tx, arguments.id).url
    settings = console.settings(console.directory(arguments)).webhooks
    allow_http = environment == "test" or settings.allow_http
    asyncio.run(make_guard(settings).check(url, allow_http=allow_http))
    with _endpoint(arguments, console) as (tx, _):
        activate_endpoint(tx, arguments.id)
    return _answer(arguments, console, "is active")


def deactivate(arguments: argparse.Namespace, console: Console) -> int:
    """Switch it off."""
    with _endpoint(arguments, console) as (tx, _):
        deactivate_endpoint(tx, arguments.id)
    return _answer(arguments, console, "is deactivated")


def trust(arguments: argparse.Namespace, console: Console) -> int:
    """Set an authority, a fingerprint, or neither."""
    ca = None if arguments.ca is None else parse_ca(_read(arguments.ca))
    pin = None if arguments.pin is None else parse_pin(arguments.pin)
    with _endpoint(arguments, console) as (tx, _):
        trust_receiver(tx, arguments.id, ca=ca, pin=pin)
        found = get_endpoint(tx, arguments.id)
    return _answer(arguments, console, f"is checked against {_trusted(found)}")


@contextmanager
def _endpoint(
    arguments: argparse.Namespace, console: Console
) -> Iterator[tuple[Transaction, EnvironmentName]]:
    """A transaction in whichever environment the endpoint is; Trouble when it is in none."""
    directory = console.directory(arguments)
    for environment in ENVIRONMENTS:
        with console.transaction(directory, environment) as tx:
            if _is_there(tx, arguments.id):
                yield tx, environment
                return
    raise Trouble(f"there is no endpoint {arguments.id}: venuebox endpoint list shows them")


def _is_there(tx: Transaction, endpoint_id: str) -> bool:
    try:
        get_endpoint(tx, endpoint_id)
    except NotFound:
        return False
    return True


def _answer(arguments: argparse.Namespace, console: Console, what: str) -> int:
    if not arguments.json:
        print(f"endpoint {arguments.id} {what}")
        return 0
    with _endpoint(arguments, console) as (tx, environment):
        print_json(_describe(environment, get_endpoint(tx, arguments.id), tx.now))
    return 0


def _read(name: str) -> str:
    try:
        return Path(name).read_text("ascii", "replace")
    except OSError as error:
        raise Trouble(f"{name} cannot be read: {error.strerror}") from None


def _trusted(endpoint: Endpoint) -> str:
    if endpoint.pin is not None:
        return f"the certificate {endpoint.pin.hex()}"
    return "the authorities this machine trusts" if endpoint.ca is None else "its own authority"


def _describe(environment: EnvironmentName, endpoint: Endpoint, now: int) -> dict[str, object]:
    expires_at = endpoint.previous_secret_expires_at
    return {
        "id": endpoint.id,
        "environment": environment,
        "url": endpoint.url,
        "events": list(endpoint.events),
        "active": endpoint.active,
        "createdAt": _instant(endpoint.created_at),
        "failuresInARow": endpoint.failures_in_a_row,
        "lastOutcome": endpoint.last_outcome,
        "lastSuccessAt": _instant(endpoint.last_success_at),
        "lastFailureAt": _instant(endpoint.last_failure_at),
        "oldSecretSignsUntil": _instant(expires_at if (expires_at or 0) > now else None),
        "ca": endpoint.ca,
        "pin": None if endpoint.pin is None else endpoint.pin.hex(),
    }


def _instant(at: int | None) -> str | None:
    return None if at is None else format_instant(at)


def _words(environment: EnvironmentName, endpoint: Endpoint) -> Iterator[str]:
    yield endpoint.id
    yield f"{environment:4}"
    yield "active" if endpoint.active else "deactivated"
    yield endpoint.last_outcome or "never used"
    yield endpoint.url
    if endpoint.ca or endpoint.pin:
        yield f"checked against {_trusted(endpoint)}"
