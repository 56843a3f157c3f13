"""`venuebox guest`: export or erase a guest's personal data (Moroccan law 09-08)."""

import argparse

from appliance import privacy
from appliance.commands import console as cli
from appliance.core.errors import OperatorError
from appliance.database.connection import Reader


def add(commands: cli.Commands) -> None:
    """Add the command to the command line."""
    group = cli.add_group(commands, "guest", "export or erase a guest's data")
    for name, run, meaning, *options in (
        ("export", run_export, "print all data about a guest as JSON"),
        ("erase", run_erase, "erase a guest's name, contact details and notes", "--json"),
    ):
        parser = cli.add_command(group, name, run, meaning, "--data", "--environment", *options)
        selection = parser.add_mutually_exclusive_group(required=True)
        selection.add_argument("--reservation", metavar="ID", help="the guest of this reservation")
        selection.add_argument("--email", metavar="E", help="guests with this email address")
        selection.add_argument("--phone", metavar="P",
                               help="guests with this phone number, in any format")  # fmt: skip


def run_export(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print the guest's data as JSON. Works while the box runs."""
    with console.reading(console.directory(arguments), arguments.environment) as reader:
        data = privacy.export_guests(reader, _find(reader, arguments))
    print(cli.json_text(data))
    return 0


def run_erase(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Erase the data, and wipe the unused space in the database files, which may contain copies.

    Works while the box runs. Also records the erasure, so that the box can repeat it after an older
    backup is restored.
    """
    directory, environment = console.directory(arguments), arguments.environment
    with console.transaction(directory, environment) as tx:
        found = _find(tx, arguments)
        for reservation_id in found:
            privacy.erase_guest(tx, reservation_id, actor="box")
        at = tx.now
    is_wiped = privacy.finish_erasures(directory.database(environment), environment, found, at)
    sentence = (
        f"the guest's data in {len(found)} reservations is erased, but is still in earlier backups"
    )
    if not is_wiped:
        sentence += (
            "\nthe database was in use or the disk was full, so the box will wipe the unused space "
            "in its files tonight"
        )
    return cli.print_answer(arguments, {"erased": found, "wiped": is_wiped}, sentence)


def _find(reader: Reader, arguments: argparse.Namespace) -> list[str]:
    if arguments.reservation is not None:
        found = privacy.keep_existing(reader, [arguments.reservation.lower()])
    else:
        found = privacy.find_reservations_of(reader, arguments.email, arguments.phone)
    if not found:
        raise OperatorError(f"nothing is stored about this guest in {arguments.environment}")
    return found
