"""`venuebox endpoint`, `deliveries` and `replay`: webhook endpoints and their deliveries."""

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from appliance.clock import format_instant
from appliance.commands import console as cli
from appliance.core.errors import NotFound, OperatorError
from appliance.core.tokens import EnvironmentName, Keyring
from appliance.database.connection import Transaction
from appliance.webhooks.deliveries import STATES
from appliance.webhooks.delivery_log import (
    LoggedAttempt,
    LoggedDelivery,
    Progress,
    Selection,
    list_delivery_log,
    replay_deliveries,
    replay_delivery,
)
from appliance.webhooks.endpoints import (
    Endpoint,
    activate_endpoint,
    deactivate_endpoint,
    get_endpoint,
    list_endpoints,
    parse_ca,
    parse_pin,
    revoke_old_secret,
    roll_secret,
    trust_receiver,
)
from appliance.webhooks.url_policy import make_guard


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "endpoint", "webhook endpoints of partners")
    cli.add_command(group, "list", show_endpoints, "list endpoints and their state",
                    "--data", "--environment?", "--json")  # fmt: skip
    _add(group, "roll", roll, "issue a new secret; the old one keeps signing for 24 hours")
    _add(group, "revoke-old-secret", revoke, "stop signing with the old secret now")
    _add(group, "activate", activate, "activate an endpoint again (at most 5 are active)")
    _add(group, "deactivate", deactivate, "deactivate an endpoint and cancel its queued deliveries")
    truster = _add(group, "trust", trust, "choose what its TLS certificate is checked against")
    which = truster.add_mutually_exclusive_group(required=True)
    which.add_argument("--ca", metavar="FILE", help="only the authorities in this PEM file")
    which.add_argument("--pin", metavar="SHA256", help="only this certificate, by fingerprint")
    which.add_argument("--system", action="store_true", help="the authorities this machine trusts")
    cli.add_command(commands, "deliveries", show_deliveries,
                    "webhook deliveries and their attempts",
                    "--data", "--environment", "--json")  # fmt: skip
    parser = cli.add_command(commands, "replay", replay, "send webhook deliveries again",
                             "--data", "--environment", "--json")  # fmt: skip
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--delivery", metavar="ID", help="one delivery")
    which.add_argument("--endpoint", metavar="ID", help="deliveries of this endpoint")
    states = parser.add_mutually_exclusive_group()
    meaning = "only those that failed six times (the default)"
    states.add_argument("--dead", action="store_true", help=meaning)
    meaning = "also delivered, cancelled and waiting ones"
    states.add_argument("--all", action="store_true", help=meaning)


def _add(group: cli.Commands, name: str, run: cli.Command, meaning: str) -> argparse.ArgumentParser:
    return cli.add_command(group, name, run, meaning, "--data", "--json", id="the endpoint's id")


def show_endpoints(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print one line for each endpoint, including deactivated ones."""
    rows = [
        (_describe(environment, endpoint, reader.now), _words(environment, endpoint))
        for environment, reader in console.each_environment(arguments)
        for endpoint in list_endpoints(reader)
    ]
    return cli.print_rows(arguments, rows)


def roll(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Issue a new secret and print it; it is not shown again."""
    master_key = console.directory(arguments).master_key()
    with _endpoint(arguments, console) as (tx, environment):
        secret = roll_secret(tx, Keyring(master_key, environment), arguments.id)
        until = get_endpoint(tx, arguments.id).previous_secret_expires_at or 0
    told = {"id": arguments.id, "secret": secret, "oldSecretSignsUntil": format_instant(until)}
    words = f"{secret}\nNote it now: it is not shown again. The old one signs too until "
    return cli.print_answer(arguments, told, f"{words}{told['oldSecretSignsUntil']}.")


def revoke(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Stop signing with the previous secret."""
    with _endpoint(arguments, console) as (tx, _):
        revoke_old_secret(tx, arguments.id)
    return _answer(arguments, console, "signs with its new secret only")


def activate(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Check the URL again, then activate the endpoint."""
    with _endpoint(arguments, console) as (tx, environment):
        url = get_endpoint(tx, arguments.id).url
    settings = console.settings(console.directory(arguments)).webhooks
    allow_http = environment == "test" or settings.allow_http
    asyncio.run(make_guard(settings).check(url, allow_http=allow_http))
    with _endpoint(arguments, console) as (tx, _):
        activate_endpoint(tx, arguments.id)
    return _answer(arguments, console, "is active")


def deactivate(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Deactivate the endpoint."""
    with _endpoint(arguments, console) as (tx, _):
        deactivate_endpoint(tx, arguments.id)
    return _answer(arguments, console, "is deactivated")


def trust(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Set the trusted authority or fingerprint, or reset to the system's authorities."""
    pem = arguments.ca and cli.read_argument(arguments.ca).decode("ascii", "replace")
    ca = None if pem is None else parse_ca(pem)
    pin = None if arguments.pin is None else parse_pin(arguments.pin)
    with _endpoint(arguments, console) as (tx, _):
        trust_receiver(tx, arguments.id, ca=ca, pin=pin)
        found = get_endpoint(tx, arguments.id)
    return _answer(arguments, console, f"is checked against {_trusted(found)}")


def show_deliveries(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print one line for each delivery, oldest first."""
    with console.reading(console.directory(arguments), arguments.environment) as reader:
        rows = [_row(each) for each in list_delivery_log(reader)]
    return cli.print_rows(arguments, rows)


def replay(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Make deliveries due now; a running box sends them at once, a stopped one after its start."""
    if arguments.delivery is not None:
        replayed = _replay_one(arguments, console)
    else:
        replayed = _replay_many(arguments, console)
    return cli.print_answer(
        arguments, {"replayed": replayed}, f"{replayed} deliveries queued again"
    )


def _replay_one(arguments: argparse.Namespace, console: cli.Console) -> int:
    if arguments.dead or arguments.all:
        raise cli.WrongUsage(
            "--dead and --all apply to --endpoint only (see venuebox replay --help)"
        )
    with (
        _found(arguments, f"delivery {arguments.delivery}", "venuebox deliveries"),
        console.transaction(console.directory(arguments), arguments.environment) as tx,
    ):
        return int(replay_delivery(tx, arguments.delivery))


def _replay_many(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Replay in pages, one transaction each, so that the box can write in between."""
    directory, environment = console.directory(arguments), arguments.environment
    selection = Selection(arguments.endpoint, STATES if arguments.all else ("dead",))
    progress: Progress | None = None
    with _found(arguments, f"endpoint {selection.endpoint_id}", "venuebox endpoint list"):
        while progress is None or not progress.done:
            with console.transaction(directory, environment) as tx:
                progress = replay_deliveries(tx, selection, progress)
        return progress.replayed


@contextmanager
def _found(arguments: argparse.Namespace, what: str, command: str) -> Iterator[None]:
    """Convert NotFound to an OperatorError that names `command` to list the valid ids."""
    try:
        yield
    except NotFound:
        where = arguments.environment
        raise OperatorError(f"there is no {what} in {where}: {command} shows them") from None


def _endpoint(
    arguments: argparse.Namespace, console: cli.Console
) -> AbstractContextManager[tuple[Transaction, EnvironmentName]]:
    """Open a transaction in the endpoint's environment. Raises OperatorError if unknown."""
    return console.transaction_where(
        arguments, "endpoint", lambda tx: get_endpoint(tx, arguments.id)
    )


def _answer(arguments: argparse.Namespace, console: cli.Console, what: str) -> int:
    with _endpoint(arguments, console) as (tx, environment):
        described = _describe(environment, get_endpoint(tx, arguments.id), tx.now)
    return cli.print_answer(arguments, described, f"endpoint {arguments.id} {what}")


def _trusted(endpoint: Endpoint) -> str:
    if endpoint.pin is not None:
        return f"the certificate {endpoint.pin.hex()}"
    return "the authorities this machine trusts" if endpoint.ca is None else "its own authority"


def _describe(environment: EnvironmentName, endpoint: Endpoint, now: int) -> dict[str, object]:
    until = endpoint.previous_secret_expires_at or 0
    return cli.describe(
        endpoint,
        *("id", "url", "events", "active", "created_at", "failures_in_a_row", "last_outcome"),
        *("last_success_at", "last_failure_at", "ca"),
        environment=environment,
        oldSecretSignsUntil=format_instant(until) if until > now else None,
        pin=endpoint.pin and endpoint.pin.hex(),
    )


def _words(environment: EnvironmentName, endpoint: Endpoint) -> list[str]:
    state = "active" if endpoint.active else "deactivated"
    words = [endpoint.id, f"{environment:4}", state, endpoint.last_outcome or "never used"]
    checked = [f"checked against {_trusted(endpoint)}"] if endpoint.ca or endpoint.pin else []
    return [*words, endpoint.url, *checked]


def _row(delivery: LoggedDelivery) -> tuple[dict[str, object], list[str]]:
    tries = ", ".join(str(a.http_status or a.outcome) for a in delivery.attempts)
    described = {
        "id": delivery.id,
        "event": delivery.event_seq,
        "type": delivery.event_type,
        "endpoint": delivery.endpoint_id,
        "state": delivery.state,
        "attempts": [_describe_attempt(attempt) for attempt in delivery.attempts],
        "nextAttemptAt": format_instant(delivery.due_at) if delivery.state == "pending" else None,
    }
    return described, [delivery.id, delivery.event_type, delivery.state, tries]


def _describe_attempt(attempt: LoggedAttempt) -> dict[str, object]:
    status = attempt.http_status
    came = {"error": attempt.outcome} if status is None else {"status": status}
    return {"at": format_instant(attempt.at), **came, "durationMs": attempt.duration_ms}
