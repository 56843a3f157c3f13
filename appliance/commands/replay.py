"""`venuebox replay`: send webhook deliveries again."""

import argparse
import sys
from datetime import date, datetime, time, timedelta

from appliance.actions.replay_deliveries import Progress, Selection, replay_deliveries
from appliance.actions.replay_delivery import replay_delivery
from appliance.clock import ZoneDatabase
from appliance.commands.console import (
    Commands,
    Console,
    WrongUsage,
    add_command,
    add_data,
    add_environment,
    add_json,
    print_json,
)
from appliance.errors import NotFound, Trouble
from appliance.model.delivery import STATES
from appliance.store.venue import get_venue


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = add_command(commands, "replay", run, "send webhook deliveries again")
    add_data(parser)
    add_environment(parser)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--delivery", metavar="ID", help="one delivery")
    which.add_argument("--endpoint", metavar="ID", help="deliveries of this endpoint")
    states = parser.add_mutually_exclusive_group()
    states.add_argument(
        "--dead", action="store_true", help="only those that failed six times (the default)"
    )
    states.add_argument(
        "--all", action="store_true", help="also delivered, cancelled and waiting ones"
    )
    meaning = "events {} this date at the venue, or this instant, such as 2026-11-21T19:00Z"
    parser.add_argument("--from", dest="since", metavar="WHEN", help=meaning.format("since"))
    parser.add_argument("--to", dest="until", metavar="WHEN", help=meaning.format("up to"))
    add_json(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Make them due; the running box sends them at once, another after its start."""
    if arguments.delivery is not None:
        replayed = _replay_one(arguments, console)
    else:
        replayed = _replay_many(arguments, console)
    if arguments.json:
        print_json({"replayed": replayed})
    else:
        print(f"{replayed} deliveries queued again")
    return 0


def _replay_one(arguments: argparse.Namespace, console: Console) -> int:
    if arguments.dead or arguments.all or arguments.since or arguments.until:
        raise WrongUsage(
            "--dead, --all, --from and --to apply to --endpoint only (see venuebox replay --help)"
        )
    try:
        with console.transaction(console.directory(arguments), arguments.environment) as tx:
            return int(replay_delivery(tx, arguments.delivery))
    except NotFound:
        raise Trouble(
            f"there is no delivery {arguments.delivery} in {arguments.environment}: "
            "venuebox deliveries shows them"
        ) from None


def _replay_many(arguments: argparse.Namespace, console: Console) -> int:
    """Page after page, each in a transaction of its own: the box goes on between them."""
    directory, environment = console.directory(arguments), arguments.environment
    selection = _select(arguments, console)
    progress: Progress | None = None
    while progress is None or not progress.done:
        try:
            with console.transaction(directory, environment) as tx:
                progress = replay_deliveries(tx, selection, progress)
        except NotFound:
            raise Trouble(
                f"there is no endpoint {selection.endpoint_id} in {environment}: "
                "venuebox endpoint list shows them"
            ) from None
        if sys.stderr.isatty():
            print(f"\r{progress.after} of {progress.last} checked", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return progress.replayed


def _select(arguments: argparse.Namespace, console: Console) -> Selection:
    with console.reading(console.directory(arguments), arguments.environment) as reader:
        zone = get_venue(reader).time_zone
    selection = Selection(arguments.endpoint, STATES if arguments.all else ("dead",))
    since, until = selection.since, selection.until
    if arguments.since is not None:
        since = _parse_when("--from", arguments.since, console.zones, zone, days=0)
    if arguments.until is not None:
        until = _parse_when("--to", arguments.until, console.zones, zone, days=1)
    if since >= until:
        raise WrongUsage("--from must be before --to")
    return Selection(selection.endpoint_id, selection.states, since, until)


def _parse_when(option: str, text: str, zones: ZoneDatabase, zone: str, *, days: int) -> int:
    """Milliseconds since 1970 of an instant, or of the beginning (`days` 1: end) of a date."""
    instant: datetime | None
    try:
        if "T" in text:
            instant = datetime.fromisoformat(text)
        else:
            day = date.fromisoformat(text) + timedelta(days=days)
            instant = datetime.combine(day, time(), zones.zone(zone))
    except (ValueError, OverflowError):
        instant = None
    if instant is None or instant.tzinfo is None:
        raise WrongUsage(
            f"{option} is {text!r}: write a date, 2026-11-21, or an instant, 2026-11-21T19:00Z"
        )
    return round(instant.timestamp() * 1000)
