"""What a command is handed: the outside world, and the box that it works on."""

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
from appliance.core.data_directory import ENVIRONMENTS, DataDirectory, choose_data_directory
from appliance.core.errors import NotFound, OperatorError
from appliance.core.files import become_owner
from appliance.core.process import wake_box
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
# A subcommand: its exit status. `main` prints an OperatorError as one sentence.
Command = Callable[[argparse.Namespace, Any], int]
_NAME_MAX = 200


class WrongUsage(OperatorError):
    """Options that cannot be meant together: exit status 2, as of those that do not exist."""


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
        """The newest tz database there is; `tz/` counts once the data directory is known."""
        own = self._own_zones
        if own not in self._zones:
            self._zones[own] = newest_zone_database(own_root=own)
        return self._zones[own]

    def directory(self, arguments: argparse.Namespace) -> DataDirectory:
        """The directory that `--data` or the environment names; a box may or may not be in it.

        Where it belongs to another user, root is that user from here on. What root alone may
        read is read before: the files that the command line names.
        """
        chosen = choose_data_directory(arguments.data, self.environ)
        become_owner(chosen.root)
        chosen.refuse_links()
        self._own_zones = chosen.root / "tz"
        return chosen

    def settings(self, directory: DataDirectory) -> Settings:
        """The settings of that box."""
        return read_settings(directory.settings_file, self.environ)

    def settings_in_force(self, directory: DataDirectory) -> Settings:
        """The same, with the host at which it listens: it may have been started with another."""
        known = self.settings(directory)
        host = directory.remembered_host() or known.server.host
        return replace(known, server=replace(known.server, host=host))

    def links(self, directory: DataDirectory, environment: EnvironmentName) -> Links:
        """The addresses of an environment, as the running box gives them out."""
        server = self.settings(directory).server
        address = directory.remembered_address() or f"http://127.0.0.1:{server.port}"
        return Links(address, server.app_url, path_prefix(environment))

    @contextmanager
    def transaction(
        self, directory: DataDirectory, environment: EnvironmentName
    ) -> Iterator[Transaction]:
        """One durable transaction beside a running box; see `session`.

        If it leaves notices, the box is poked: it looks at its rows again.
        """
        path = _existing_database(directory, environment)
        with session(path, self.clock, self.tokens, self.zones) as tx:
            _check_schema(tx, path)
            yield tx
        if tx.notices:
            wake_box(directory.wake_box)

    @contextmanager
    def transaction_where(
        self, arguments: argparse.Namespace, what: str, find: Callable[[Transaction], object]
    ) -> Iterator[tuple[Transaction, EnvironmentName]]:
        """The same in the environment where `find` finds something; OperatorError if none."""
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
        """A snapshot of the environment that is asked for, or of each."""
        directory = self.directory(arguments)
        for environment in ENVIRONMENTS:
            if arguments.environment in {None, environment}:
                with self.reading(directory, environment) as reader:
                    yield environment, reader

    @contextmanager
    def reading(self, directory: DataDirectory, environment: EnvironmentName) -> Iterator[Reader]:
        """One snapshot beside a running box, which need not wait for it."""
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
    """A subcommand that `main` will run, with some of the options that many commands have.

    `called` is the help of `--name`, which a person will recognise in a list; `id` that of `ID`.
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
    """A command that has commands of its own, such as `venuebox key create`."""
    parser = add_command(commands, name, None, meaning)
    return parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)


def add_data(parser: argparse.ArgumentParser) -> None:
    """`--data`."""
    parser.add_argument("--data", **_OPTIONS["--data"])


def describe(row: object, *names: str, **more: object) -> dict[str, object]:
    """Attributes of a row as members of JSON: `created_at` is the instant `createdAt`."""
    values = {name: getattr(row, name) for name in names} | more
    return {
        re.sub("_(.)", lambda found: found[1].upper(), name): (
            optional_instant(value) if name.endswith("_at") else value
        )
        for name, value in values.items()
    }


def print_rows(arguments: argparse.Namespace, rows: Iterable[tuple[object, list[str]]]) -> int:
    """A line for each row, as JSON or in words; the exit status.

    All are read before the first is printed: who reads slowly keeps no snapshot open.
    """
    for described, words in list(rows):
        print_answer(arguments, described, "  ".join(words))
    return 0


def print_answer(arguments: argparse.Namespace, described: object, words: str) -> int:
    """One answer, as JSON or in words; the exit status."""
    print(json.dumps(described, ensure_ascii=False) if arguments.json else words)
    return 0


def read_argument(name: str) -> bytes:
    """The file that the command line names; OperatorError when it cannot be read."""
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise OperatorError(f"{name} cannot be read: {error.strerror}") from None


def parse_day(text: str) -> date:
    """The `type` of an argument that is a day."""
    found = parse_date(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date: YYYY-MM-DD")
    return found


def print_json(data: object) -> None:
    """One JSON value on one line of standard output."""
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
    """A box that was last served by another version is upgraded by `serve`, never beside it."""
    found, known = reader.value("PRAGMA user_version"), list_migrations()[-1][0]
    if found > known:
        raise OperatorError(describe_newer(path, found, known))
    if found != known:
        raise OperatorError(
            f"{path.name} has schema {found}, this program supports {known}: "
            "start the box with this version first"
        )
