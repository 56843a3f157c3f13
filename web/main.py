"""The command line: parse the arguments and run the chosen command."""

import argparse
import errno
import gc
import io
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NoReturn

from appliance.clock import SystemClock
from appliance.commands.console import Commands, Console, WrongUsage, add_command
from appliance.core.errors import ApiError, OperatorError
from appliance.core.files import name_user
from appliance.core.tokens import Tokens
from appliance.logs import ConsoleLines, print_error, stderr_is_journal

_USAGE = 2
_CLOSED = "{user} cannot access {what}. Specify another path, or run the command as another user."
_REMEDIES = {
    errno.EROFS: "{what} is on a read-only volume. Check the disk, then try again.",
    errno.EACCES: _CLOSED,
    errno.EPERM: _CLOSED,
    errno.ENOENT: "{what} does not exist. Correct the path, or create its folder first.",
    errno.ENOTDIR: "{what} is not a valid path: one of its folders is a file. Correct the path.",
    errno.EEXIST: "{what} already exists. Specify another path.",
    errno.EISDIR: "{what} is a folder. Specify a file.",
    errno.ENOSPC: "{what} cannot be written, because the disk is full. Free some space, "
    "then try again.",
    errno.EIO: "{what} cannot be read or written. Check the disk, and replace it if necessary.",
}


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run `venuebox` and return its exit status: 0, 1 (error), 2 (usage) or 130 (interrupted).

    Errors are printed without a traceback.
    """
    console = Console(SystemClock(), Tokens(), os.environ if environ is None else environ)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal in Latin-1 has no letters for Arabic names: show the rest.
        sys.stdout.reconfigure(errors="replace")
    shown = logging.StreamHandler()
    shown.setFormatter(ConsoleLines(has_priority=stderr_is_journal(console.environ)))
    logging.basicConfig(handlers=[shown], level=logging.WARNING)
    try:
        words = sys.argv[1:] if argv is None else argv
        arguments = make_parser(serves=list(words[:1]) == ["serve"]).parse_args(words)
        status = int(arguments.run(arguments, console))
        sys.stdout.flush()
    except SystemExit as leaving:  # argparse has already printed the help or the error
        return int(leaving.code or 0)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # output was piped to a program that has ended, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - every error is printed as one sentence
        print_error(_sentence(error), console.environ)
        return _USAGE if isinstance(error, WrongUsage) else 1
    return status


def make_parser(*, serves: bool = False) -> argparse.ArgumentParser:
    """Return the parser for all commands.

    If `serves` is true, the parser accepts only `serve`, and does not import the modules of the
    other commands.
    """
    parser: argparse.ArgumentParser = _Parser(
        prog="venuebox", description="runs a venue's reservations, guest passes and door"
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands: Commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_serve(commands)
    if not serves:
        _add_others(commands)
    return parser


def _add_others(commands: Commands) -> None:
    from appliance.commands import (  # noqa: PLC0415
        backup,
        credentials,
        init,
        service,
        status,
        tls,
        update,
    )
    from terminal_bridge import agent as bridge  # noqa: PLC0415 - `serve` does not need it
    from web.relay import commands as relay  # noqa: PLC0415 - `serve` does not need it

    for command in (
        init, credentials, status, tls, bridge, backup, service, update, relay,
    ):  # fmt: skip
        command.add(commands)


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports a usage error on one line."""

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with status 2."""
        self.exit(_USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    """Prints the version on one line. `venuebox version` also lists the components."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from appliance.environment import own_version  # noqa: PLC0415 - `serve` does not need it

        print(f"{parser.prog} {own_version()}")
        parser.exit()


def _add_serve(commands: Commands) -> None:
    parser = add_command(commands, "serve", _serve, "run the box", "--data", "--host", "--port")
    parser.add_argument(
        "--demo", action="store_true", help="serve a demo venue, on this machine only"
    )
    parser.add_argument("--keep", action="store_true", help="continue the demo in --data DIR")
    meaning = "serve although another box of this venue answers on the network"
    parser.add_argument("--force", action="store_true", help=meaning)


def _serve(arguments: argparse.Namespace, console: Console) -> int:
    if arguments.keep and not (arguments.demo and arguments.data):
        raise OperatorError("--keep continues an earlier demo. Add --demo --data DIR.")
    # Imported here because other commands start much faster without the web package.
    with _importing():
        if arguments.demo:
            from web.demo import run_demo as run  # noqa: PLC0415
        else:
            from web.serve import run_serve as run  # noqa: PLC0415
    return run(arguments, console)


@contextmanager
def _importing() -> Iterator[None]:
    """During the block, disable garbage collection and set environment variables for aiohttp.

    SSL_CERT_FILE prevents aiohttp from loading the system's certificates when it is imported, which
    saves 2 MB and 40 ms. When the box needs these certificates, appliance/webhooks/client.py loads
    them. AIOHTTP_NOSENDFILE disables sendfile(2), which waits forever for a client that does not
    read.
    """
    changed = {"SSL_CERT_FILE": os.devnull, "AIOHTTP_NOSENDFILE": "1"}
    before = dict(os.environ)
    os.environ.update(changed)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        for name in changed:
            del os.environ[name]
        os.environ.update(before)


def _sentence(error: Exception) -> str:
    if isinstance(error, OperatorError):
        return str(error)
    if isinstance(error, ApiError):
        return error.error_en
    if isinstance(error, OSError) and error.errno in _REMEDIES:
        what = error.filename or "a file"
        return _REMEDIES[error.errno].format(what=what, user=name_user(os.geteuid()))
    return f"unexpected {type(error).__name__}: {' '.join(str(error).split())}"


if __name__ == "__main__":
    sys.exit(main())
