"""`venuebox tls`: show, import, renew and remove the box's TLS certificates."""

import argparse
from typing import Any

from appliance.clock import format_instant
from appliance.commands import console as cli
from appliance.core.data_directory import DataDirectory, wake_box
from appliance.core.errors import OperatorError
from appliance.core.network import own_addresses


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "tls", "the box's TLS certificates")
    cli.add_command(group, "show", _show, "show names, expiry and fingerprints", "--data", "--json")
    meaning = "import a certificate for its names"
    parser = cli.add_command(group, "import", _import, meaning, "--data")
    parser.add_argument("--cert", metavar="FILE", required=True, help="certificate and chain, PEM")
    parser.add_argument("--key", metavar="FILE", required=True, help="its private key, PEM")
    parser = cli.add_command(group, "renew", _renew, "issue a new certificate now", "--data")
    meaning = "also a new authority, which every device must trust"
    parser.add_argument("--authority", action="store_true", help=meaning)
    cli.add_command(group, "forget", _forget, "remove the imported certificate", "--data")


def _show(arguments: argparse.Namespace, console: cli.Console) -> int:
    from appliance.tls.certificates import describe  # noqa: PLC0415 - cryptography is heavy

    found = describe(_directory(arguments, console).root / "tls", console.clock.now())
    if found is None:
        raise OperatorError("there is no certificate yet: venuebox serve creates it")
    lines = _tell("signed by the box", found)
    if authority := found["authority"]:  # same form as on /trust, to compare by eye
        lines.append(f"authority     {bytes.fromhex(authority).hex(':').upper()}")
    if found["imported"] is not None:
        lines += _tell("imported, for its names only", found["imported"])
    return cli.print_answer(arguments, found, "\n".join(lines))


def _tell(kind: str, found: dict[str, Any]) -> list[str]:
    return [
        f"certificate   {kind}",
        f"names         {', '.join(found['names'])}",
        f"ends          {found['endsAt']} ({found['daysLeft']} days)",
        f"SHA-256       {found['fingerprint']}",
    ]


def _import(arguments: argparse.Namespace, console: cli.Console) -> int:
    from appliance.tls.certificates import import_certificate  # noqa: PLC0415 - as above

    certificates, key = cli.read_argument(arguments.cert), cli.read_argument(arguments.key)
    directory = _directory(arguments, console)
    names = import_certificate(directory.root / "tls", certificates, key, console.clock.now())
    wake_box(directory.wakeup_pipe)
    print(f"in use for {', '.join(names.dns)}")
    return 0


def _renew(arguments: argparse.Namespace, console: cli.Console) -> int:
    from appliance.door.terminals import list_terminals  # noqa: PLC0415 - as above
    from appliance.tls import certificates  # noqa: PLC0415 - as above
    from appliance.venue.rows import get_venue  # noqa: PLC0415 - as above

    directory = _directory(arguments, console)
    server = console.settings(directory).server
    with console.reading(directory, "live") as live, console.reading(directory, "test") as test:
        venue = get_venue(live)
        is_known = bool(list_terminals(live) or list_terminals(test))
    wanted = certificates.wanted_names(venue.slug, server, own_addresses())
    folder = directory.root / "tls"
    if arguments.authority:
        (folder / certificates.AUTHORITY).unlink(missing_ok=True)
    certificates.Certificates(
        folder, console.clock, lambda: venue.name, lambda: wanted, lambda: is_known
    ).renew(force=True)
    wake_box(directory.wakeup_pipe)
    print(f"renewed on {format_instant(console.clock.now())}")
    return 0


def _forget(arguments: argparse.Namespace, console: cli.Console) -> int:
    from appliance.tls.certificates import forget_imported  # noqa: PLC0415 - as above

    directory = _directory(arguments, console)
    if not forget_imported(directory.root / "tls"):
        raise OperatorError("there is no imported certificate")
    wake_box(directory.wakeup_pipe)
    print("the box's own certificate is used for every name")
    return 0


def _directory(arguments: argparse.Namespace, console: cli.Console) -> DataDirectory:
    directory = console.directory(arguments)
    directory.check()
    return directory
