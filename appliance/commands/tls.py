"""`venuebox tls`: show, import, renew and remove the box's TLS certificates."""

import argparse
from typing import Any

from appliance.clock import format_instant
from appliance.commands import console as cli
from appliance.core.data_directory import wake_box
from appliance.core.errors import OperatorError
from appliance.core.network import own_addresses
from appliance.door.terminals import list_terminals
from appliance.tls import certificates
from appliance.venue.rows import get_venue


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "tls", "the box's TLS certificates")
    cli.add_command(group, "show", show, "show names, expiry and fingerprints", "--data", "--json")
    meaning = "import a certificate to use for the names in it"
    parser = cli.add_command(group, "import", import_pair, meaning, "--data")
    parser.add_argument("--cert", metavar="FILE", required=True, help="certificate and chain, PEM")
    parser.add_argument("--key", metavar="FILE", required=True, help="its private key, PEM")
    parser = cli.add_command(group, "renew", renew, "issue a new certificate now", "--data")
    meaning = "also create a new authority, which every device must trust"
    parser.add_argument("--authority", action="store_true", help=meaning)
    cli.add_command(group, "forget", forget, "remove the imported certificate", "--data")


def show(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print names, expiry and fingerprints. Raises OperatorError if there is no certificate."""
    found = certificates.describe(console.box(arguments).root / "tls", console.clock.now())
    if found is None:
        raise OperatorError("there is no certificate yet. venuebox serve creates it.")
    lines = _describe("signed by the box", found)
    if found["authority"]:
        lines.append(f"authority     {_shown(found['authority'])}")
    if found["imported"] is not None:
        lines += _describe("imported; used for its own names only", found["imported"])
    return cli.print_answer(arguments, found, "\n".join(lines))


def _describe(kind: str, found: dict[str, Any]) -> list[str]:
    return [
        f"certificate   {kind}",
        f"names         {', '.join(found['names'])}",
        f"ends          {found['endsAt']} ({found['daysLeft']} days)",
        f"SHA-256       {_shown(found['fingerprint'])}",
    ]


def _shown(fingerprint: str) -> str:
    """Return the fingerprint as browsers and `/trust` show it, so that people can compare them."""
    return bytes.fromhex(fingerprint).hex(":").upper()


def import_pair(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Import a certificate and its key. A running box uses it at once."""
    pem, key = cli.read_argument(arguments.cert), cli.read_argument(arguments.key)
    directory = console.box(arguments)
    names = certificates.import_certificate(directory.root / "tls", pem, key, console.clock.now())
    wake_box(directory.wakeup_pipe)
    print(f"in use for {', '.join(names.dns)}")
    return 0


def renew(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Issue a new certificate, and with --authority a new authority."""
    directory = console.box(arguments)
    server = console.settings(directory).server
    with console.reading(directory, "live") as live, console.reading(directory, "test") as test:
        venue = get_venue(live)
        has_terminals = bool(list_terminals(live) or list_terminals(test))
    wanted = certificates.wanted_names(venue.slug, server, own_addresses())
    folder = directory.root / "tls"
    if arguments.authority:
        (folder / certificates.AUTHORITY).unlink(missing_ok=True)
    certificates.Certificates(
        folder, console.clock, lambda: venue.name, lambda: wanted, lambda: has_terminals
    ).renew(force=True)
    wake_box(directory.wakeup_pipe)
    print(f"renewed on {format_instant(console.clock.now())}")
    return 0


def forget(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Remove the imported certificate. Raises OperatorError if there is none."""
    directory = console.box(arguments)
    if not certificates.forget_imported(directory.root / "tls"):
        raise OperatorError("there is no imported certificate")
    wake_box(directory.wakeup_pipe)
    print("the box's own certificate is used for every name")
    return 0
