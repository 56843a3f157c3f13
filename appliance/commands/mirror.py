"""`venuebox mirror`: compare the copy in PostgreSQL with the box, or begin it anew."""

import argparse
from functools import partial

from appliance.commands import console as cli
from appliance.core.errors import OperatorError
from appliance.core.settings import MirrorSettings


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "mirror", "compare or renew the copy in PostgreSQL")
    meaning = "compare the rows in the mirror with those of the box"
    cli.add_command(group, "check", check, meaning, "--data", "--json")
    meaning = "copy everything to the mirror anew, and delete there what the box does not have"
    cli.add_command(group, "copy", copy, meaning, "--data")


def check(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print the comparison. Returns 1 if rows differ."""
    from appliance.mirror.compare import compare  # noqa: PLC0415 - loads asyncio
    from appliance.mirror.server import Trouble  # noqa: PLC0415

    directory = console.box(arguments)
    settings = _settings(arguments, console)
    try:
        found, waiting = compare(partial(console.reading, directory, "live"), settings)
    except Trouble as trouble:
        raise OperatorError(
            f"the mirror cannot be read: {trouble}. Run venuebox doctor, which says what to do."
        ) from None
    is_equal = all(table.is_equal for table in found)
    lines = [
        f"{table.name:12} {table.here:10,} here {table.there:10,} there  "
        f"{'equal' if table.is_equal else 'DIFFERENT'}"
        for table in found
    ]
    if waiting:
        lines.append(f"not compared: {waiting:,} rows on their way")
    if not is_equal:
        lines.append("To make them equal, run venuebox mirror copy.")
    tables = [cli.describe(table, "name", "here", "there", "is_equal") for table in found]
    answer = {"isEqual": is_equal, "waiting": waiting, "tables": tables}
    cli.print_answer(arguments, answer, "\n".join(lines))
    return 0 if is_equal else 1


def copy(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Let the box copy everything anew. A running box begins at once."""
    from appliance.mirror.changes import copy_anew, find_state  # noqa: PLC0415

    _settings(arguments, console)
    with console.transaction(console.directory(arguments), "live") as tx:
        if find_state(tx) is None:
            raise OperatorError("The box fills no mirror yet. Restart it.")
        copy_anew(tx)
    print("The box copies everything anew. venuebox mirror check says when it is done.")
    return 0


def _settings(arguments: argparse.Namespace, console: cli.Console) -> MirrorSettings:
    settings = console.settings(console.box(arguments)).mirror
    if not settings.url:
        raise OperatorError("mirror.url is not set. Set it in settings.toml and restart the box.")
    return settings
