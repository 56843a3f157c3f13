"""Context of a command: clock, randomness, environment variables and the box's data."""

import argparse
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

from appliance.clock import Clock, ZoneDatabase, newest_zone_database, optional_instant
from appliance.core.data_directory import (
    ENVIRONMENTS,
    DataDirectory,
    choose_data_directory,
    wake_box,
)
from appliance.core.errors import NotFound, OperatorError
from appliance.core.files import become_owner
from appliance.core.settings import Settings, read_settings
from appliance.core.tokens import EnvironmentName, Tokens
from appliance.database.connection import (
    UNUSABLE,
    Reader,
    Transaction,
    describe_missing,
    describe_newer,
    describe_unusable,
    open_for_command,
)
from appliance.database.integrity import session
from appliance.database.migrate import list_migrations
from appliance.environment import Links, path_prefix
from appliance.venue.model import parse_date

# argparse has no public name for what add_subparsers returns.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - as said
# A subcommand returns its exit status. `main` prints an OperatorError as one sentence.
Command = Callable[[argparse.Namespace, Any], int]
_NAME_MAX = 200


class WrongUsage(OperatorError):
    """Options that exclude each other: exit status 2, as for unknown options."""


class Console:
    """The clock, the randomness and the environment variables of this invocation."""

    def __init__(self, clock: Clock, tokens: Tokens, environ: Mapping[str, str]) -> None:
        self.clock = clock
        self.tokens = tokens
        self.environ = environ
        self._own_zones: Path | None = None
        self._zones: dict[Path | None, ZoneDatabase] = {}

    @property
    def zones(self) -> ZoneDatabase:
        """The newest tz database; includes `tz/` once the data directory is known."""
        own = self._own_zones
        if own not in self._zones:
            self._zones[own] = newest_zone_database(own_root=own)
        return self._zones[own]

    def directory(self, arguments: argparse.Namespace) -> DataDirectory:
        """Return the directory named by `--data` or the environment, with or without a box.

        If it belongs to another user, root acts as that user from here on. Read files that only
        root can read, such as those named on the command line, before this call.
        """
        chosen = choose_data_directory(arguments.data, self.environ)
        become_owner(chosen.root)
        chosen.refuse_links()
        self._own_zones = chosen.root / "tz"
        return chosen

    def settings(self, directory: DataDirectory) -> Settings:
        """Read the settings of the box."""
        return read_settings(directory.settings_file, self.environ)

    def settings_in_force(self, directory: DataDirectory) -> Settings:
        """Read the settings, with the host where the box actually listens."""
        known = self.settings(directory)
        host = directory.remembered_host() or known.server.host
        return replace(known, server=replace(known.server, host=host))

    def links(self, directory: DataDirectory, environment: EnvironmentName) -> Links:
        """Return the links of an environment, as the running box issues them."""
        server = self.settings(directory).server
        address = directory.remembered_address() or f"http://127.0.0.1:{server.port}"
        return Links(address, server.app_url, path_prefix(environment))

    @contextmanager
    def transaction(
        self, directory: DataDirectory, environment: EnvironmentName
    ) -> Iterator[Transaction]:
        """Run one durable transaction while the box may run; see `session`.

        If the transaction leaves notices, wake the box, so that it reloads its rows.
        """
        path = _existing_database(directory, environment)
        with session(path, self.clock, self.tokens, self.zones) as tx:
            _check_schema(tx, path)
            yield tx
        if tx.notices:
            wake_box(directory.wakeup_pipe)

    @contextmanager
    def transaction_where(
        self, arguments: argparse.Namespace, what: str, find: Callable[[Transaction], object]
    ) -> Iterator[tuple[Transaction, EnvironmentName]]:
        """Run a transaction in the environment where `find` succeeds, else raise OperatorError."""
        directory = self.directory(arguments)
        for environment in ENVIRONMENTS:
            with self.transaction(directory, environment) as tx:
                try:
                    is_here = find(tx) is not False
                except NotFound:
                    continue
                if is_here:
                    yield tx, environment
                    return
        raise OperatorError(f"there is no {what} {arguments.id}: venuebox {what} list shows them")

    def each_environment(
        self, arguments: argparse.Namespace
    ) -> Iterator[tuple[EnvironmentName, Reader]]:
        """Iterate over snapshots of the selected environment, or of each."""
        directory = self.directory(arguments)
        for environment in ENVIRONMENTS:
            if arguments.environment in {None, environment}:
                with self.reading(directory, environment) as reader:
                    yield environment, reader

    @contextmanager
    def reading(self, directory: DataDirectory, environment: EnvironmentName) -> Iterator[Reader]:
        """Open a read-only snapshot; does not block a running box."""
        path = _existing_database(directory, environment)
        try:
            with closing(open_for_command(path)) as connection:
                connection.execute("BEGIN")
                reader = Reader(connection, self.clock, self.zones)
                _check_schema(reader, path)
                yield reader
        except UNUSABLE as error:
            raise OperatorError(describe_unusable(path, error)) from None


_OPTIONS: dict[str, dict[str, Any]] = {
    "--data": {
        "metavar": "DIR",
        "help": "data directory (default: VENUEBOX_DATA, else the platform's)",
    },
    "--environment": {"choices": ENVIRONMENTS, "required": True, "help": "live or test"},
    "--environment?": {"choices": ENVIRONMENTS, "help": "live or test (default: both)"},
    "--json": {"action": "store_true", "help": "print JSON"},
}


def add_command(
    commands: Commands, name: str, run: Command | None, meaning: str, *options: str, **own: str
) -> argparse.ArgumentParser:
    """Add a subcommand that `main` will run, with the given common options.

    `called` is the help text of `--name`; `id` is the help text of `ID`.
    """
    parser: argparse.ArgumentParser = commands.add_parser(name, help=meaning, description=meaning)
    parser.set_defaults(run=run)
    for option in options:
        parser.add_argument(option.rstrip("?"), **_OPTIONS[option])
    if "called" in own:
        parser.add_argument("--name", type=_name, required=True, metavar="N", help=own["called"])
    if "id" in own:
        parser.add_argument("id", metavar="ID", help=own["id"])
    return parser


def add_group(commands: Commands, name: str, meaning: str) -> Commands:
    """Add a command with subcommands, such as `venuebox key create`."""
    parser = add_command(commands, name, None, meaning)
    return parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the option `--data`."""
    parser.add_argument("--data", **_OPTIONS["--data"])


def describe(row: object, *names: str, **more: object) -> dict[str, object]:
    """Convert attributes of a row to JSON members: `created_at` becomes the instant `createdAt`."""
    values = {name: getattr(row, name) for name in names} | more
    return {
        re.sub("_(.)", lambda found: found[1].upper(), name): (
            optional_instant(value) if name.endswith("_at") else value
        )
        for name, value in values.items()
    }


def print_rows(arguments: argparse.Namespace, rows: Iterable[tuple[object, list[str]]]) -> int:
    """Print a line for each row, as JSON or text. Returns the exit status.

    Reads all rows first, so that a slow pipe does not keep the snapshot open.
    """
    for described, words in list(rows):
        print_answer(arguments, described, "  ".join(words))
    return 0


def print_answer(arguments: argparse.Namespace, described: object, words: str) -> int:
    """Print one result, as JSON or text. Returns the exit status."""
    print(json.dumps(described, ensure_ascii=False) if arguments.json else words)
    return 0


def read_argument(name: str) -> bytes:
    """Read a file named on the command line. Raises OperatorError if it cannot be read."""
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise OperatorError(f"{name} cannot be read: {error.strerror}") from None


def parse_day(text: str) -> date:
    """Parse a date; the argparse `type` of a date argument."""
    found = parse_date(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date: YYYY-MM-DD")
    return found


def print_json(data: object) -> None:
    """Print one JSON value on one line of standard output."""
    print(json.dumps(data, ensure_ascii=False))


def _name(text: str) -> str:
    name = " ".join(text.split())
    if not 1 <= len(name) <= _NAME_MAX:
        raise argparse.ArgumentTypeError("use 1 to 200 characters")
    return name


def _existing_database(directory: DataDirectory, environment: EnvironmentName) -> Path:
    directory.check()
    path = directory.database(environment)
    if not path.exists():
        raise OperatorError(describe_missing(path))
    return path


def _check_schema(reader: Reader, path: Path) -> None:
    """Raise OperatorError if the schema is not current: only `serve` upgrades a database."""
    found, known = reader.value("PRAGMA user_version"), list_migrations()[-1][0]
    if found > known:
        raise OperatorError(describe_newer(path, found, known))
    if found != known:
        raise OperatorError(
            f"{path.name} has schema {found}, this program supports {known}: "
            "start the box with this version first"
        )
