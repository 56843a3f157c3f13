"""`venuebox deliveries`: what was sent to partners, attempt by attempt."""

import argparse

from appliance.clock import format_instant
from appliance.commands.console import (
    Commands,
    Console,
    add_command,
    add_data,
    add_environment,
    add_json,
    print_json,
)
from appliance.store.delivery_log import LoggedAttempt, LoggedDelivery, list_delivery_log


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = add_command(commands, "deliveries", run, "webhook deliveries and their attempts")
    add_data(parser)
    add_environment(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """One line for each delivery, oldest first."""
    with console.reading(console.directory(arguments), arguments.environment) as reader:
        for delivery in list_delivery_log(reader):
            if arguments.json:
                print_json(_describe(delivery))
            else:
                tries = ", ".join(str(a.http_status or a.outcome) for a in delivery.attempts)
                print(f"{delivery.id}  {delivery.event_type}  {delivery.state}  {tries}")
    return 0


def _describe(delivery: LoggedDelivery) -> dict[str, object]:
    pending = delivery.state == "pending"
    return {
        "id": delivery.id,
        "event": delivery.event_seq,
        "type": delivery.event_type,
        "endpoint": delivery.endpoint_id,
        "state": delivery.state,
        "attempts": [_describe_attempt(attempt) for attempt in delivery.attempts],
        "nextAttemptAt": format_instant(delivery.due_at) if pending else None,
    }


def _describe_attempt(attempt: LoggedAttempt) -> dict[str, object]:
    answered = attempt.http_status is not None
    return {
        "at": format_instant(attempt.at),
        "status" if answered else "error": attempt.http_status if answered else attempt.outcome,
        "durationMs": attempt.duration_ms,
    }
