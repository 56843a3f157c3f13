"""`venuebox version`: versions, and the components in the one-file binary."""

import argparse
import platform
import sys
from importlib import resources

import apsw

from appliance.commands.console import Commands, Console, add_command
from appliance.core.errors import OperatorError
from appliance.environment import own_version


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = add_command(commands, "version", run, "version, Python, SQLite, tz database", "--data")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--sbom", action="store_true", help="components, as CycloneDX JSON")
    which.add_argument("--licences", action="store_true", help="licences of the components")


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Print four lines, or a document from the binary. Raises OperatorError outside the binary."""
    if arguments.sbom or arguments.licences:
        sys.stdout.write(_inventory("sbom.json" if arguments.sbom else "licences.txt"))
        return 0
    console.directory(arguments)
    zones = console.zones
    print(f"venuebox {own_version()}")
    print(f"Python {platform.python_version()}")
    print(f"SQLite {apsw.sqlite_lib_version()}")
    print(f"tz database {zones.version} ({zones.origin})")
    return 0


def _inventory(name: str) -> str:
    """Return a document that packaging/inventory.py wrote when the binary was built."""
    try:
        return resources.files("appliance").joinpath("inventory", name).read_text("utf-8")
    except FileNotFoundError:
        raise OperatorError("only the built file has this list: make binary") from None
