"""`venuebox deliveries`: webhook deliveries and their attempts."""

import argparse

from appliance.clock import format_instant
from appliance.commands import console as cli
from appliance.webhooks import delivery_log


def add(commands: cli.Commands) -> None:
    """Add the command to the command line."""
    meaning = "webhook deliveries and their attempts"
    options = "--data", "--environment", "--json"
    cli.add_command(commands, "deliveries", show_deliveries, meaning, *options)


def show_deliveries(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print one line for each delivery, oldest first."""
    with console.reading(console.directory(arguments), arguments.environment) as reader:
        rows = [_row(*each) for each in delivery_log.list_delivery_log(reader)]
    return cli.print_rows(arguments, rows)


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
