"""`venuebox doorlog export`: export the door log."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from appliance.commands import console as cli
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_file
from appliance.door.scan_log import Export


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "doorlog", "the log of every scan at the door")
    export_parser = cli.add_command(group, "export", export, "export the door log",
                                    "--data", "--environment")  # fmt: skip
    export_parser.add_argument("--from", dest="since", type=cli.parse_day, metavar="DATE",
                               help="first evening (default: the oldest)")  # fmt: skip
    export_parser.add_argument("--to", dest="until", type=cli.parse_day, metavar="DATE",
                               help="last evening (default: the newest)")  # fmt: skip
    export_parser.add_argument("--format", choices=("json", "csv"), default="json",
                               help="JSON, or CSV for spreadsheets")  # fmt: skip
    export_parser.add_argument("--output", metavar="FILE", help="default: standard output")


def export(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Export the log. Raises WrongUsage if the period ends before it begins."""
    if arguments.since and arguments.until and arguments.until < arguments.since:
        raise cli.WrongUsage("--to is before --from")
    directory, environment = console.box(arguments), arguments.environment
    with console.reading(directory, environment) as reader:
        log = Export(reader, arguments.format, arguments.since, arguments.until)
    with _opened(arguments.output) as file:
        file.write(log.begin())
        page = b"-"
        while page:
            with console.reading(directory, environment) as reader:
                page = log.page(reader)
            file.write(page)
        file.write(log.end())
    if arguments.output is not None:
        print(f"{log.count} scans in {arguments.output}")
    return 0


@contextmanager
def _opened(output: str | None) -> Iterator[BinaryIO]:
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    try:
        with atomic_file(Path(output)) as file:
            yield file
    except OSError as error:
        raise OperatorError(f"{output} cannot be written: {error.strerror}") from None
