"""`venuebox doorlog export|verify`: export the signed door log and verify it."""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from appliance.commands import console as cli
from appliance.core.data_directory import ENVIRONMENTS
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_file
from appliance.core.tokens import Keyring
from appliance.door.guest_pass import list_signing_keys
from appliance.door.scan_log import count_scans, find_broken_link
from appliance.door.scan_log_file import NOT_AN_EXPORT, Export, check_export


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "doorlog", "the log of every scan at the door")
    export_parser = cli.add_command(group, "export", export, "export the door log",
                                    "--data", "--environment")  # fmt: skip
    export_parser.add_argument("--from", dest="since", type=cli.parse_day, metavar="DATE",
                               help="first evening (default: the oldest)")  # fmt: skip
    export_parser.add_argument("--to", dest="until", type=cli.parse_day, metavar="DATE",
                               help="last evening (default: the newest)")  # fmt: skip
    export_parser.add_argument("--format", choices=("jsonl", "csv"), default="jsonl",
                               help="signed JSON lines or unsigned CSV")  # fmt: skip
    export_parser.add_argument("--output", metavar="FILE", help="default: standard output")
    meaning = "verify an exported file, or the box's own log"
    verify_parser = cli.add_command(group, "verify", verify, meaning, "--data")
    verify_parser.add_argument("--environment", choices=ENVIRONMENTS,
                               help="live or test. Required without FILE. With FILE, the "
                               "default is the environment named in it.")  # fmt: skip
    verify_parser.add_argument("file", metavar="FILE", nargs="?", help="an exported file")
    verify_parser.add_argument("--public-key", type=_public_key, metavar="HEX",
                               help="the box's public key. Required if there is no box "
                               "here.")  # fmt: skip


def export(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Export the log. Returns status 1 if the hash chain of the scans is broken.

    Raises WrongUsage if the period ends before it begins. The signed export would contain no scans,
    and so seem to prove that nobody came.
    """
    if arguments.since and arguments.until and arguments.until < arguments.since:
        raise cli.WrongUsage("--to is before --from")
    directory, environment = console.box(arguments), arguments.environment
    keyring = Keyring(directory.master_key(), environment)
    choice = arguments.format, arguments.since, arguments.until
    with console.reading(directory, environment) as reader:
        log = Export(reader, environment, keyring, *choice)
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
        if arguments.format == "jsonl":
            print(f"signed; the public key is {log.key.public_key().public_bytes_raw().hex()}")
    if log.broken is not None:
        print(
            f"venuebox: scan {log.broken} was changed, or an earlier scan was removed. The export "
            "contains the log in its present state.",
            file=sys.stderr,
        )
        return 1
    return 0


def verify(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Verify a file or the box's own log.

    If it is invalid, prints the first invalid line or scan, and returns status 1.
    """
    if arguments.file is None and arguments.environment is None:
        raise cli.WrongUsage("specify a FILE to verify, or --environment for the box's own log")
    if arguments.file is None:
        directory = console.directory(arguments)
        with console.reading(directory, arguments.environment) as reader:
            count, broken = count_scans(reader), find_broken_link(reader)
        what = f"the door log of {arguments.environment}"
        problem = f"scan {broken}: it was changed, or an earlier scan was removed"
    else:
        what = arguments.file
        try:
            with Path(what).open("rb") as file:
                checked = check_export(file, partial(_keys, arguments, console))
        except OSError as error:
            raise OperatorError(f"{what} cannot be read: {error.strerror}") from None
        if checked.problem == NOT_AN_EXPORT:
            print(f"{what}: {NOT_AN_EXPORT}")
            return 1
        count, broken = checked.count, checked.line
        problem = f"line {broken}: {checked.problem}"
    if broken is None:
        print(f"{what} is complete and unchanged: {count} scans")
        return 0
    print(f"{problem}\n{what} was changed or damaged")
    return 1


def _keys(
    arguments: argparse.Namespace, console: cli.Console, header: dict[str, Any]
) -> Iterable[bytes]:
    """Return the accepted public keys: --public-key if it is given, otherwise the box's keys."""
    if arguments.public_key is not None:
        return [arguments.public_key]
    environment = arguments.environment or header.get("environment")
    if environment not in ENVIRONMENTS:
        return []
    directory = console.directory(arguments)
    if not directory.holds_a_box():
        raise OperatorError(
            f"the public key is unknown, because there is no box in {directory.root}. Specify the "
            "key with --public-key."
        )
    with console.reading(directory, environment) as reader:
        return [key.public_key for key in list_signing_keys(reader)]


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


def _public_key(text: str) -> bytes:
    if not re.fullmatch(r"[0-9A-Fa-f]{64}", text):
        raise argparse.ArgumentTypeError("a public key has 64 hexadecimal digits")
    return bytes.fromhex(text)
