"""`venuebox endpoint`, `deliveries` and `replay`: webhook endpoints and their deliveries."""

import argparse
import asyncio
from collections.abc import Callable
from functools import partial

from appliance.clock import format_instant
from appliance.commands import console as cli
from appliance.core.errors import NotFound, OperatorError
from appliance.core.tokens import EnvironmentName, Keyring
from appliance.database.connection import Transaction
from appliance.webhooks import delivery_log, endpoints
from appliance.webhooks.deliveries import STATES
from appliance.webhooks.endpoints import Endpoint
from appliance.webhooks.url_policy import make_guard


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "endpoint", "webhook endpoints of partners")
    cli.add_command(group, "list", show_endpoints, "list endpoints and their state",
                    "--data", "--environment?", "--json")  # fmt: skip
    _add(group, "roll", roll, "issue a new secret; for 24 hours, deliveries are signed with both")
    _add(group, "revoke-old-secret", revoke, "stop signing with the old secret now")
    _add(group, "activate", activate, "activate an endpoint again (at most 5 are active)")
    _add(group, "deactivate", deactivate, "deactivate an endpoint and cancel its queued deliveries")
    truster = _add(group, "trust", trust, "choose how its TLS certificate is verified")
    anchor = truster.add_mutually_exclusive_group(required=True)
    anchor.add_argument("--ca", metavar="FILE", help="only the authorities in this PEM file")
    anchor.add_argument(
        "--pin", metavar="SHA256", help="only the certificate with this fingerprint"
    )
    anchor.add_argument("--system", action="store_true", help="the authorities this machine trusts")
    cli.add_command(commands, "deliveries", show_deliveries,
                    "webhook deliveries and their attempts",
                    "--data", "--environment", "--json")  # fmt: skip
    parser = cli.add_command(commands, "replay", replay, "send webhook deliveries again",
                             "--data", "--environment", "--json")  # fmt: skip
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--delivery", metavar="ID", help="one delivery")
    choice.add_argument("--endpoint", metavar="ID", help="deliveries of this endpoint")
    states = parser.add_mutually_exclusive_group()
    meaning = "only deliveries that failed six times (the default)"
    states.add_argument("--dead", action="store_true", help=meaning)
    meaning = "also delivered, cancelled and waiting deliveries"
    states.add_argument("--all", action="store_true", help=meaning)


def _add(group: cli.Commands, name: str, run: cli.Command, meaning: str) -> argparse.ArgumentParser:
    return cli.add_command(
        group, name, run, meaning, "--data", "--json", id_help="the endpoint's id"
    )


def show_endpoints(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print one line for each endpoint, including deactivated endpoints."""
    rows = [
        (_describe(environment, endpoint, reader.now), _columns(environment, endpoint))
        for environment, reader in console.each_environment(arguments)
        for endpoint in endpoints.list_endpoints(reader)
    ]
    return cli.print_rows(arguments, rows)


def roll(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Issue a new secret and print it once."""
    master_key = console.directory(arguments).master_key()

    def action(tx: Transaction, environment: EnvironmentName) -> tuple[str, str]:
        secret = endpoints.roll_secret(tx, Keyring(master_key, environment), arguments.id)
        until = endpoints.get_endpoint(tx, arguments.id).previous_secret_expires_at or 0
        return secret, format_instant(until)

    secret, until = console.change(arguments, "endpoint", action)
    return cli.print_answer(
        arguments,
        {"id": arguments.id, "secret": secret, "oldSecretSignsUntil": until},
        f"{secret}\nStore it now: it is not shown again. The old secret also signs until {until}.",
    )


def revoke(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Stop signing with the previous secret."""
    return _change(
        arguments, console, endpoints.revoke_old_secret, "signs only with its new secret"
    )


def activate(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Check the URL again, then activate the endpoint."""
    environment, url = console.change(
        arguments, "endpoint", lambda tx, name: (name, endpoints.get_endpoint(tx, arguments.id).url)
    )
    settings = console.settings(console.directory(arguments)).webhooks
    allow_http = environment == "test" or settings.allow_http
    asyncio.run(make_guard(settings).check(url, allow_http=allow_http))
    return _change(arguments, console, endpoints.activate_endpoint, "is active")


def deactivate(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Deactivate the endpoint."""
    return _change(arguments, console, endpoints.deactivate_endpoint, "is deactivated")


def trust(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Set the trusted authority or fingerprint, or trust the system's authorities again."""
    pem = arguments.ca and cli.read_argument(arguments.ca).decode("ascii", "replace")
    ca = None if pem is None else endpoints.parse_ca(pem)
    pin = None if arguments.pin is None else endpoints.parse_pin(arguments.pin)
    action = partial(endpoints.trust_receiver, ca=ca, pin=pin)
    return _change(arguments, console, action, f"is checked against {_trusted(ca, pin)}")


def show_deliveries(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print one line for each delivery, oldest first."""
    with console.reading(console.directory(arguments), arguments.environment) as reader:
        rows = [_row(*each) for each in delivery_log.list_delivery_log(reader)]
    return cli.print_rows(arguments, rows)


def replay(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Make deliveries due now. They are sent at once, or when the box is next started."""
    if arguments.delivery is None:
        replay_chosen = _replay_of_endpoint
        what, command = f"endpoint {arguments.endpoint}", "venuebox endpoint list"
    else:
        replay_chosen = _replay_one
        what, command = f"delivery {arguments.delivery}", "venuebox deliveries"
    try:
        replayed = replay_chosen(arguments, console)
    except NotFound:
        where = arguments.environment
        raise OperatorError(f"there is no {what} in {where}. See {command}.") from None
    return cli.print_answer(
        arguments, {"replayed": replayed}, f"{replayed} deliveries queued again"
    )


def _replay_one(arguments: argparse.Namespace, console: cli.Console) -> int:
    if arguments.dead or arguments.all:
        raise cli.WrongUsage(
            "--dead and --all apply to --endpoint only (see venuebox replay --help)"
        )
    with console.transaction(console.directory(arguments), arguments.environment) as tx:
        return int(delivery_log.replay_delivery(tx, arguments.delivery))


def _replay_of_endpoint(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Replay in pages with one transaction each, so that the box can write in between."""
    directory, environment = console.directory(arguments), arguments.environment
    selection = delivery_log.Selection(arguments.endpoint, STATES if arguments.all else ("dead",))
    progress: delivery_log.Progress | None = None
    while progress is None or not progress.done:
        with console.transaction(directory, environment) as tx:
            progress = delivery_log.replay_deliveries(tx, selection, progress)
    return progress.replayed


def _change(
    arguments: argparse.Namespace, console: cli.Console,
    change: Callable[[Transaction, str], object], outcome: str,
) -> int:  # fmt: skip
    """Change the endpoint `arguments.id` and print it.

    `change` must raise NotFound if the id is unknown.
    """

    def action(tx: Transaction, environment: EnvironmentName) -> dict[str, object]:
        change(tx, arguments.id)
        return _describe(environment, endpoints.get_endpoint(tx, arguments.id), tx.now)

    described = console.change(arguments, "endpoint", action)
    return cli.print_answer(arguments, described, f"endpoint {arguments.id} {outcome}")


def _trusted(ca: str | None, pin: bytes | None) -> str:
    if pin is not None:
        return f"the certificate {pin.hex()}"
    return "the authorities this machine trusts" if ca is None else "its own authority"


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


def _columns(environment: EnvironmentName, endpoint: Endpoint) -> list[str]:
    state = "active" if endpoint.active else "deactivated"
    columns = [endpoint.id, f"{environment:4}", state, endpoint.last_outcome or "never used"]
    if not (endpoint.ca or endpoint.pin):
        return [*columns, endpoint.url]
    return [*columns, endpoint.url, f"checked against {_trusted(endpoint.ca, endpoint.pin)}"]


def _row(
    event_seq: int, delivery: delivery_log.ListedDelivery, attempts: list[delivery_log.Attempt]
) -> tuple[dict[str, object], list[str]]:
    shown = ", ".join(str(each.http_status or each.outcome) for each in reversed(attempts))
    described = {
        "id": delivery.id,
        "event": event_seq,
        "type": delivery.event_type,
        "endpoint": delivery.endpoint_id,
        "state": delivery.state,
        "attempts": [_describe_attempt(attempt) for attempt in reversed(attempts)],
        "nextAttemptAt": format_instant(delivery.due_at) if delivery.state == "pending" else None,
    }
    return described, [delivery.id, delivery.event_type, delivery.state, shown]


def _describe_attempt(attempt: delivery_log.Attempt) -> dict[str, object]:
    status = attempt.http_status
    outcome = {"error": attempt.outcome} if status is None else {"status": status}
    return {"at": format_instant(attempt.at), **outcome, "durationMs": attempt.duration_ms}
