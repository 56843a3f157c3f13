"""The command `venuebox bridge`, which imports its implementation only when it runs."""

import argparse

from appliance.commands.console import Commands, Console, add_command


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    meaning = "run scanners at a door away from the box"
    parser = add_command(commands, "bridge", bridge, meaning, "--data")
    parser.add_argument("--box", metavar="URL", help="the box's base URL; for test, append /test")
    meaning = "the one-time code from venuebox terminal pair"
    parser.add_argument("--pair", metavar="CODE", help=meaning)
    parser.add_argument("--name", metavar="N", help="this bridge's name in the box's list")
    meaning = "the box's authority, PEM, from its page /trust"
    parser.add_argument("--ca", metavar="FILE", help=meaning)


def bridge(arguments: argparse.Namespace, console: Console) -> int:
    """Pair if `--pair` is given, then run until SIGTERM or SIGINT. Return the exit status."""
    from terminal_bridge.agent.run import run_bridge  # noqa: PLC0415 - other commands start without aiohttp

    return run_bridge(arguments, console)
