"""`venuebox bridge`: the command. It imports its implementation only when it runs."""

import argparse

from appliance.commands.console import Commands, Console, add_command, add_data


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = add_command(commands, "bridge", run, "run scanners at another door, away from the box")
    add_data(parser)
    parser.add_argument("--box", metavar="URL", help="the box's address; /test at its end for test")
    parser.add_argument(
        "--pair", metavar="CODE", help="the one-time code of venuebox terminal pair"
    )
    parser.add_argument("--name", metavar="N", help="name of this bridge at the box")
    parser.add_argument("--ca", metavar="FILE", help="PEM certificate to trust for the box's https")
    parser.add_argument(
        "--pin", metavar="SHA256", help="fingerprint of the box's certificate, instead of --ca"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Pair if requested, then run until SIGTERM or SIGINT. Returns the exit status."""
    from terminal_bridge.agent.run import run_bridge  # noqa: PLC0415 - as said

    return run_bridge(arguments, console)
