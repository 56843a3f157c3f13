"""`venuebox doorlog export|verify`: the door log, signed, and whether it is whole."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from appliance.clock import format_instant
from appliance.commands.console import (
    Commands,
    Console,
    add_command,
    add_data,
    add_environment,
    add_group,
)
from appliance.data_directory import ENVIRONMENTS, DataDirectory
from appliance.door_log.aside import written_aside
from appliance.door_log.export import Request, write_export
from appliance.door_log.verification import Checked, check_file, check_rows, statement_file
from appliance.environment import EnvironmentName
from appliance.errors import Trouble
from appliance.model.evening import evening_end, parse_date
from appliance.store.scan_log import (
    LoggedScan,
    Stretch,
    list_log_keys,
    list_scans,
    list_types,
    measure_stretch,
)
from appliance.store.signing_keys import get_signing_key
from appliance.store.venue import get_venue
from appliance.tokens import Keyring

_PAGE = 2000
_PUBLIC_KEY_BYTES = 32
_USAGE = 2


def add(commands: Commands) -> None:
    """Add the commands to the command line."""
    group = add_group(commands, "doorlog", "the log of every scan at the door")
    export_parser = add_command(group, "export", export, "export the door log, signed")
    add_data(export_parser)
    add_environment(export_parser)
    export_parser.add_argument("--from", dest="since", type=_date, metavar="DATE",
                               help="first evening (default: the oldest)")  # fmt: skip
    export_parser.add_argument("--to", dest="until", type=_date, metavar="DATE",
                               help="last evening (default: the newest)")  # fmt: skip
    export_parser.add_argument("--format", choices=("jsonl", "csv"), default="jsonl",
                               help="JSON lines, or CSV for a spreadsheet")  # fmt: skip
    export_parser.add_argument("--output", metavar="FILE", help="default: standard output")
    verify_parser = add_command(
        group, "verify", verify, "verify an exported file, or the box's own log"
    )
    verify_parser.add_argument("file", metavar="FILE", nargs="?", help="an exported file")
    add_data(verify_parser)
    add_environment(verify_parser, required=False)
    verify_parser.add_argument("--public-key", type=_public_key, metavar="HEX",
                               help="public key of the box, when it is not here")  # fmt: skip


def export(arguments: argparse.Namespace, console: Console) -> int:
    """Write the log; status 1 when a scan in it does not follow from the one before."""
    kind, output = arguments.format, arguments.output
    if kind == "csv" and output is None:
        return _usage("doorlog export: CSV needs --output; its signature goes to a file beside it")
    directory, environment = console.directory(arguments), arguments.environment
    request, private_key = _prepare(arguments, console, directory)
    scans = _scans(console, directory, environment, request.stretch)
    progress = _progress(request.stretch.count if request.stretch else 0)
    with _opened(output) as file:
        exported = write_export(request, scans, private_key, file.write, progress)
    if kind == "csv":
        with _opened(str(statement_file(Path(output)))) as file:
            file.write(exported.statement.encode() + b"\n")
    if output is not None:
        key = private_key.public_key().public_bytes_raw().hex()
        print(f"{exported.count} scans in {output}\nsigned; the public key is {key}")
    if exported.broken is not None:
        print(
            f"venuebox: scan {exported.broken} was changed, or one before it removed: the export "
            "shows the log as it is; run venuebox doorlog verify",
            file=sys.stderr,
        )
        return 1
    return 0


def verify(arguments: argparse.Namespace, console: Console) -> int:
    """Say what is wrong, a line for each finding; status 1 when anything is."""
    if arguments.file is None and arguments.environment is None:
        return _usage("doorlog verify: give a FILE, or --environment for the box's own log")
    if arguments.file is None:
        return _verify_database(arguments.environment, console.directory(arguments), console)
    path = Path(arguments.file)
    try:
        checked = check_file(path, _Keys(arguments, console), _progress(None))
    except OSError as error:
        raise Trouble(f"{path} cannot be read: {error.strerror}") from None
    for finding in checked.findings:
        beside = str(statement_file(path))
        print(f"{beside if finding.line == 0 else f'line {finding.line}'}: {finding.sentence}")
    return _conclude(checked, str(path))


def _verify_database(
    environment: EnvironmentName, directory: DataDirectory, console: Console
) -> int:
    with console.reading(directory, environment) as reader:
        stretch = measure_stretch(reader, None, None)
    checked = check_rows(_scans(console, directory, environment, stretch))
    for finding in checked.findings:
        print(f"at scan {finding.line}: {finding.sentence}")
    return _conclude(checked, f"the door log of {environment}")


def _conclude(checked: Checked, what: str) -> int:
    if checked.findings:
        print(f"{what} was tampered with or damaged: {len(checked.findings)} findings")
        return 1
    print(f"{what} is whole: {checked.count} scans")
    return 0


def _prepare(
    arguments: argparse.Namespace, console: Console, directory: DataDirectory
) -> tuple[Request, Ed25519PrivateKey]:
    directory.check()
    keyring = Keyring(directory.master_key(), arguments.environment)
    with console.reading(directory, arguments.environment) as reader:
        venue = get_venue(reader)
        zone = reader.zones.zone(venue.time_zone)
        since, until = arguments.since, arguments.until
        begins = since and evening_end(since - timedelta(days=1), zone, venue.evening_ends_at)
        ends = until and evening_end(until, zone, venue.evening_ends_at)
        request = Request(
            kind=arguments.format,
            environment=arguments.environment,
            venue=venue,
            zone=zone,
            types=list_types(reader),
            asked=(since and since.isoformat(), until and until.isoformat()),
            stretch=measure_stretch(reader, begins, ends),
            now=format_instant(console.clock.now()),
        )
        return request, get_signing_key(reader, keyring)[1]


def _scans(
    console: Console,
    directory: DataDirectory,
    environment: EnvironmentName,
    stretch: Stretch | None,
) -> Iterator[LoggedScan]:
    """The rows, page by page: a long export keeps no snapshot open beside the running box."""
    after = stretch.first - 1 if stretch else 0
    while stretch and after < stretch.last:
        with console.reading(directory, environment) as reader:
            page = list(list_scans(reader, after, stretch.last, _PAGE))
        yield from page
        after = page[-1].seq if page else stretch.last


class _Keys:
    """The public keys that may have signed: the one given, else the box's own."""

    def __init__(self, arguments: argparse.Namespace, console: Console) -> None:
        self._arguments = arguments
        self._console = console

    def __call__(self, header: dict[str, Any]) -> Iterable[bytes]:
        if self._arguments.public_key is not None:
            return [self._arguments.public_key]
        environment = self._arguments.environment or header.get("environment")
        if environment not in ENVIRONMENTS:
            return []
        directory = self._console.directory(self._arguments)
        if not directory.holds_a_box():
            raise Trouble(
                f"there is no box in {directory.root} to take the public key from: "
                "name it with --public-key"
            )
        with self._console.reading(directory, environment) as reader:
            return list_log_keys(reader)


@contextmanager
def _opened(output: str | None) -> Iterator[BinaryIO]:
    if output is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    try:
        with written_aside(Path(output)) as file:
            yield file
    except OSError as error:
        raise Trouble(f"{output} cannot be written: {error.strerror}") from None


def _progress(total: int | None) -> Callable[[int], None]:
    """Tells a person at a terminal how far it is; a script hears nothing."""
    of = "" if total is None else f" of {total}"

    def tell(count: int) -> None:
        if count % _PAGE == 0 or count == total:
            end = "\n" if count == total else ""
            print(f"\r{count}{of} scans", end=end, file=sys.stderr, flush=True)

    return tell if sys.stderr.isatty() else lambda _: None


def _usage(sentence: str) -> int:
    print(f"venuebox {sentence}", file=sys.stderr)
    return _USAGE


def _date(text: str) -> date:
    found = parse_date(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date: YYYY-MM-DD")
    return found


def _public_key(text: str) -> bytes:
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != _PUBLIC_KEY_BYTES:
        raise argparse.ArgumentTypeError("a public key has 64 hexadecimal digits")
    return raw
