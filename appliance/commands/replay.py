"""`venuebox replay`: send webhook deliveries again."""

import argparse

from appliance.actions.replay_delivery import (
    Progress,
    Selection,
    replay_deliveries,
    replay_delivery,
)
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
    if arguments.dead or arguments.all:
        raise WrongUsage("--dead and --all apply to --endpoint only (see venuebox replay --help)")
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
    selection = Selection(arguments.endpoint, STATES if arguments.all else ("dead",))
    progress: Progress | None = None
    try:
        while progress is None or not progress.done:
            with console.transaction(directory, environment) as tx:
                progress = replay_deliveries(tx, selection, progress)
    except NotFound:
        raise Trouble(
            f"there is no endpoint {selection.endpoint_id} in {environment}: "
            "venuebox endpoint list shows them"
        ) from None
    return progress.replayed
