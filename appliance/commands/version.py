"""`venuebox version`: what runs here."""

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version

import apsw

from appliance.commands.console import Commands, Console, add_command


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    add_command(commands, "version", run, "version, Python, SQLite, tz database")


def run(_arguments: argparse.Namespace, console: Console) -> int:
    """Four lines."""
    zones = console.zones
    print(f"venuebox {_own_version()}")
    print(f"Python {platform.python_version()}")
    print(f"SQLite {apsw.sqlite_lib_version()}")
    print(f"tz database {zones.version} ({zones.origin})")
    return 0


def _own_version() -> str:
    try:
        return version("venuebox")
    except PackageNotFoundError:  # run from a checkout that was never installed
        return "from source"
