"""The command line: every package's commands, `serve`, and the real outside world."""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from appliance.clock import SystemClock
from appliance.commands import (
    backup,
    deliveries,
    doctor,
    doorlog,
    endpoint,
    guest,
    init,
    key,
    replay,
    restore,
    service,
    signing_key,
    staff,
    terminal,
    tls,
    venue,
    verify,
    version,
)
from appliance.commands.console import Commands, Console, add_command, add_data
from appliance.errors import Refusal, Trouble
from appliance.tokens import Tokens
from terminal_bridge.bridge import command as bridge

_COMMANDS = (
    init, venue, key, terminal, staff, guest, endpoint, deliveries, replay, doctor, doorlog,
    tls, bridge,
    backup, restore, verify, service, signing_key,
    version,
)  # fmt: skip


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run `venuebox`; its exit status: 0, 1 (trouble) or 2 (usage). Never a traceback."""
    console = Console(SystemClock(), Tokens(), os.environ if environ is None else environ)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    try:
        arguments = make_parser().parse_args(argv)
        status = int(arguments.run(arguments, console))
        sys.stdout.flush()
    except SystemExit as leaving:  # argparse has said what was wrong
        return int(leaving.code or 0)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has seen enough, as in `venuebox deliveries | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - a person at a console gets a sentence
        print(f"venuebox: {_sentence(error)}", file=sys.stderr)
        return 1
    return status


def make_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser: argparse.ArgumentParser = _Parser(
        prog="venuebox", description="the box that runs a venue's reservations"
    )
    commands: Commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_serve(commands)
    for command in _COMMANDS:
        command.add(commands)
    return parser


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the usage in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _add_serve(commands: Commands) -> None:
    parser = add_command(commands, "serve", _serve, "run the box")
    add_data(parser)
    parser.add_argument("--host", metavar="H", help="address to listen on (else server.host)")
    parser.add_argument("--port", type=_port, metavar="P", help="port (else server.port)")
    parser.add_argument(
        "--demo", action="store_true", help="a ready-made venue, on this machine alone"
    )
    parser.add_argument(
        "--qr", action="store_true", help="show the setup link of a new box as a QR code too"
    )


def _serve(arguments: argparse.Namespace, console: Console) -> int:
    # Only this command needs the web: the others start in a fraction of the time.
    if arguments.demo:
        from web.demo.run import run_demo  # noqa: PLC0415

        return run_demo(arguments, console)
    from web.serve import run_serve  # noqa: PLC0415

    return run_serve(arguments, console)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def _sentence(error: Exception) -> str:
    if isinstance(error, Trouble):
        return str(error)
    if isinstance(error, Refusal):
        return error.error_en
    return f"unexpected {type(error).__name__}: {' '.join(str(error).split())}"


if __name__ == "__main__":
    sys.exit(main())
