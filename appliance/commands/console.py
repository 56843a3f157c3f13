"""The context of a command: clock, randomness, environment variables, box data, and output."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

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
from appliance.core.text import clean_line, one_line
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
from appliance.database.migrate import newest_schema
from appliance.environment import Links, path_prefix

T = TypeVar("T")
# The result type of add_subparsers. argparse has no public name for it.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
# Runs a subcommand and returns its exit status. `main` prints the message of an OperatorError.
Command = Callable[[argparse.Namespace, Any], int]
_NAME_MAX = 200


class WrongUsage(OperatorError):
    """Raised if arguments are missing or contradict each other. `main` then exits with status 2."""


class Console:
    """The clock, the randomness and the environment variables of this invocation."""

    def __init__(self, clock: Clock, tokens: Tokens, environ: Mapping[str, str]) -> None:
        self.clock = clock
        self.tokens = tokens
        self.environ = environ

    @cached_property
    def zones(self) -> ZoneDatabase:
        """The newest tz database on this machine."""
        return newest_zone_database()

    def directory(self, arguments: argparse.Namespace) -> DataDirectory:
        """Return the data directory (see `choose_data_directory`). It need not contain a box.

        If root calls this and the directory belongs to a different user, the process acts as that
        user from then on. Before this call, read files that only root can read, such as files named
        on the command line. Raises OperatorError if a subfolder is a link or the owner cannot read
        the program.
        """
        chosen = choose_data_directory(arguments.data, self.environ)
        become_owner(chosen.root)
        chosen.refuse_links()
        return chosen

    def box(self, arguments: argparse.Namespace) -> DataDirectory:
        """Return the data directory. Raises OperatorError if it does not contain a box."""
        directory = self.directory(arguments)
        directory.check()
        return directory

    def settings(self, directory: DataDirectory) -> Settings:
        """Read the settings of the box."""
        return read_settings(directory.settings_file, self.environ)

    def settings_in_force(self, directory: DataDirectory) -> Settings:
        """Read the settings, but set `server.host` to the host that the box last listened on."""
        known = self.settings(directory)
        host = directory.remembered_host() or known.server.host
        return replace(known, server=replace(known.server, host=host))

    def links(self, directory: DataDirectory, environment: EnvironmentName) -> Links:
        """Return an environment's `Links`, with which a command builds the same URLs as the box."""
        server = self.settings(directory).server
        address = directory.remembered_address() or f"http://127.0.0.1:{server.port}"
        return Links(address, server.app_url, path_prefix(environment))

    @contextmanager
    def transaction(
        self, directory: DataDirectory, environment: EnvironmentName
    ) -> Iterator[Transaction]:
        """Open a transaction that is committed durably at the end. The box may be running.

        If the transaction has change notices, wakes a running box, which then rereads its data.
        Raises OperatorError if the database is missing, unusable or has a different schema version.
        """
        path = _existing_database(directory, environment)
        with session(path, self.clock, self.tokens, self.zones) as tx:
            _check_schema(tx, path)
            yield tx
        if tx.notices:
            wake_box(directory.wakeup_pipe)

    def change(
        self, arguments: argparse.Namespace, what: str,
        action: Callable[[Transaction, EnvironmentName], T],
    ) -> T:  # fmt: skip
        """Run `action` in a transaction of the environment that has the row `arguments.id`.

        Tries live, then test. `action` must raise NotFound if the environment does not have the
        row. Returns the result of `action`. Raises OperatorError if neither environment has it.
        """
        directory = self.directory(arguments)
        for environment in ENVIRONMENTS:
            with suppress(NotFound), self.transaction(directory, environment) as tx:
                return action(tx, environment)
        raise OperatorError(f"there is no {what} {arguments.id}. Run venuebox {what} list.")

    def each_environment(
        self, arguments: argparse.Namespace
    ) -> Iterator[tuple[EnvironmentName, Reader]]:
        """Yield (environment, snapshot) for the selected environment, or by default for both."""
        directory = self.directory(arguments)
        for environment in ENVIRONMENTS:
            if arguments.environment in {None, environment}:
                with self.reading(directory, environment) as reader:
                    yield environment, reader

    @contextmanager
    def reading(self, directory: DataDirectory, environment: EnvironmentName) -> Iterator[Reader]:
        """Open a read-only snapshot, which does not block a running box.

        Raises OperatorError if the database is missing, unusable or has a different schema version.
        """
        path = _existing_database(directory, environment)
        try:
            with closing(open_for_command(path)) as connection:
                connection.execute("BEGIN")
                reader = Reader(connection, self.clock, self.zones)
                _check_schema(reader, path)
                yield reader
        except UNUSABLE as error:
            raise OperatorError(describe_unusable(path, error)) from None


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


_DATA = "data directory (default: VENUEBOX_DATA, else /srv/venuebox if it exists, else the user's)"
_OPTIONS: dict[str, dict[str, Any]] = {
    "--data": {"metavar": "DIR", "help": _DATA},
    "--environment": {"choices": ENVIRONMENTS, "required": True, "help": "live or test"},
    "--environment?": {"choices": ENVIRONMENTS, "help": "live or test (default: both)"},
    "--host": {"metavar": "H", "help": "address to listen on (default: server.host)"},
    "--port": {"type": _port, "metavar": "P", "help": "port (default: server.port)"},
    "--json": {"action": "store_true", "help": "print JSON"},
}


def add_command(
    commands: Commands, name: str, run: Command | None, meaning: str, *options: str, **own: str
) -> argparse.ArgumentParser:
    """Add a subcommand that `main` will run, with the given common options.

    The keyword argument `name_help` is the help text of the option `--name`, and `id_help` that of
    the argument `ID`. Each is added only if its help text is given.
    """
    parser: argparse.ArgumentParser = commands.add_parser(name, help=meaning, description=meaning)
    parser.set_defaults(run=run)
    for option in options:
        parser.add_argument(option.rstrip("?"), **_OPTIONS[option])
    if "name_help" in own:
        parser.add_argument("--name", type=_name, required=True, metavar="N", help=own["name_help"])
    if "id_help" in own:
        parser.add_argument("id", metavar="ID", help=own["id_help"])
    return parser


def add_group(commands: Commands, name: str, meaning: str) -> Commands:
    """Add a command with subcommands, such as `venuebox key create`."""
    parser = add_command(commands, name, None, meaning)
    return parser.add_subparsers(dest="subcommand", metavar="COMMAND", required=True)


def describe(row: object, *names: str, **more: object) -> dict[str, object]:
    """Convert the attributes of `row` listed in `names`, and the values in `more`, to JSON members.

    For example, `created_at` becomes `createdAt`, with an ISO 8601 instant as its value.
    """
    values = {name: getattr(row, name) for name in names} | more
    return {
        re.sub("_(.)", lambda found: found[1].upper(), name): (
            optional_instant(value) if name.endswith("_at") else value
        )
        for name, value in values.items()
    }


def print_rows(arguments: argparse.Namespace, rows: Iterable[tuple[object, list[str]]]) -> int:
    """Print one line for each pair (JSON value, text columns). Returns the exit status.

    Reads all rows first, so that a slow pipe does not keep the snapshot open. Removes control
    characters from the text, because a phone can choose the terminal's name when it is paired.
    """
    for described, columns in list(rows):
        print_answer(arguments, described, one_line("  ".join(columns)))
    return 0


def print_answer(arguments: argparse.Namespace, described: object, text: str) -> int:
    """Print `described` as JSON with --json, otherwise `text`. Returns the exit status."""
    print(json_text(described) if arguments.json else text)
    return 0


def json_text(value: object) -> str:
    """Return `value` as JSON. Characters that stdout cannot encode are escaped."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def read_argument(name: str) -> bytes:
    """Read a file named on the command line. Raises OperatorError if it cannot be read."""
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise OperatorError(f"{name} cannot be read: {error.strerror}") from None


def _name(text: str) -> str:
    name = clean_line(text)
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
    """Raise OperatorError unless the schema is current. Only `serve` upgrades a database."""
    found, known = reader.value("PRAGMA user_version"), newest_schema()
    if found > known:
        raise OperatorError(describe_newer(path, found, known))
    if found != known:
        raise OperatorError(
            f"{path.name} has schema {found}, but this program needs schema {known}. Start the "
            "box with this version of the program, which upgrades the schema."
        )
