"""`venuebox relay`: run a relay and manage its boxes, or connect this box to a relay."""

import argparse
import asyncio
import io
from pathlib import Path

from appliance.backup.copies import forget_relay_copies
from appliance.clock import HOUR_MS, format_instant
from appliance.commands import console as cli
from appliance.core.data_directory import DataDirectory, wake_box
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write, become_owner, sync
from appliance.core.settings import parse_settings
from appliance.core.settings_file import change_settings
from appliance.relay_access import access_file
from appliance.release import read_release_key
from web.relay.enrolment import (
    SECRET_BYTES,
    Enrolments,
    Invitation,
)

_RELAY_DATA = "the relay's data directory (default: VENUEBOX_DATA)"
_TOKEN_VARIABLE, _TOKEN_LEAST = "VENUEBOX_RELAY_TOKEN", 16
# The options of `venuebox relay serve`: name, metavar, default and meaning. N must be at least 1.
_SERVE_OPTIONS: tuple[tuple[str, str, str | int, str], ...] = (
    ("--host", "H", "0.0.0.0", "address to listen on"),  # noqa: S104 - a public server
    ("--tls-port", "P", 443, "public https port"),
    ("--http-port", "P", 80, "public http port"),
    ("--ssh-port", "P", 2222, "port for boxes"),
    ("--status-host", "H", "127.0.0.1", "address of the status page"),
    ("--status-port", "P", 9180, "port of the status page"),
    ("--box-connections", "N", 200, "open connections of one box"),
    ("--box-kilobytes", "N", 4096, "kilobytes a second of one box, in both directions together"),
    ("--box-backup-megabytes", "MB", 2000, "backups that one box may keep here; 0: none"),
    ("--source-connections", "N", 200, "open connections of one client address"),
    ("--source-per-minute", "N", 600, "new connections a minute of one client address"),
)


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "relay", "reach boxes behind routers through a public server")
    _add_serve(group)
    parser = _add(group, "invite", invite, "print a one-time code with which a box joins")
    parser.add_argument("name", metavar="NAME", help="public host name of the box")
    meaning = "hours until it ends (default: 24)"
    parser.add_argument("--hours", type=int, default=24, metavar="N", help=meaning)
    parser = _add(group, "list", list_boxes, "list the boxes and the open invitations")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser = _add(group, "release", release, "offer a signed release to boxes that allow it")
    parser.add_argument("file", metavar="FILE", help="the release")
    meaning = "percent of the boxes that may install it (default: 100; 0: none)"
    parser.add_argument("--share", type=int, default=100, metavar="N", help=meaning)
    parser = _add(group, "revoke", revoke, "cut a box, and end its invitation")
    parser.add_argument("name", metavar="NAME", help="public host name of the box")
    parser = cli.add_command(group, "join", join, "connect this box to a relay", "--data")
    parser.add_argument("code", metavar="CODE", help="what venuebox relay invite printed")
    cli.add_command(group, "leave", leave, "disconnect this box from its relay", "--data")


def _add(group: cli.Commands, name: str, run: cli.Command, meaning: str) -> argparse.ArgumentParser:
    parser = cli.add_command(group, name, run, meaning)
    parser.add_argument("--data", metavar="DIR", help=_RELAY_DATA)
    return parser


def _add_serve(group: cli.Commands) -> None:
    parser = _add(group, "serve", serve, "run the relay")
    meaning = "name at which boxes reach this relay"
    parser.add_argument("--address", metavar="HOST", required=True, help=meaning)
    for option, metavar, default, meaning in _SERVE_OPTIONS:
        help_ = f"{meaning} (default: {default})"
        parser.add_argument(
            option, type=type(default), default=default, metavar=metavar, help=help_
        )


def serve(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Run the relay until a signal arrives. Raises OperatorError if it cannot listen."""
    from web.relay import relay  # noqa: PLC0415 - imports the SSH library
    from web.relay.server import Limits  # noqa: PLC0415 - as above

    token = console.environ.get(_TOKEN_VARIABLE, "")
    if 0 < len(token) < _TOKEN_LEAST:
        raise OperatorError(f"{_TOKEN_VARIABLE} must have at least {_TOKEN_LEAST} characters")
    try:
        arguments.address.encode("idna")
    except UnicodeError:
        raise OperatorError(f"--address: {arguments.address!r} is not a host name") from None
    for option, metavar, _default, _meaning in _SERVE_OPTIONS:
        if metavar == "N" and getattr(arguments, option[2:].replace("-", "_")) < 1:
            raise OperatorError(f"{option} must be 1 or more")
    limits = Limits(
        arguments.box_connections, arguments.box_kilobytes * 1024,
        max(0, arguments.box_backup_megabytes) * 1_000_000,
    )  # fmt: skip
    relay.run_relay(_root(arguments, console), console.clock, arguments, limits, token)
    return 0


def invite(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print a one-time code that lets a box join.

    Raises OperatorError if the name is invalid or no relay has run here.
    """
    ends_at = console.clock.now() + max(1, arguments.hours) * HOUR_MS
    secret = console.tokens.random_bytes(SECRET_BYTES)
    found = _enrolments(arguments, console).invite(arguments.name.lower(), secret, ends_at)
    print(found.encode())
    return 0


def list_boxes(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Print the enrolled boxes and the invitations that have not expired."""
    enrolments = _enrolments(arguments, console)
    rows: list[tuple[object, list[str]]] = []
    for box in enrolments.boxes().values():
        described = cli.describe(box, "name", "enrolled_at")
        rows.append((described, [box.name, f"enrolled {format_instant(box.enrolled_at)}"]))
    for pending in enrolments.invitations(console.clock.now()):
        described = {"name": pending.name, "invitedUntil": format_instant(pending.ends_at)}
        rows.append((described, [pending.name, f"invited until {described['invitedUntil']}"]))
    return cli.print_rows(arguments, rows)


def revoke(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Delete a box and its invitation. A running relay disconnects the box.

    Raises OperatorError for an unknown name.
    """
    root = _root(arguments, console)
    if not Enrolments(root).revoke(arguments.name.lower()):
        raise OperatorError(
            f"there is no box named {arguments.name}. Run venuebox relay list to see the boxes."
        )
    wake_box(DataDirectory(root).wakeup_pipe)
    return 0


def release(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Offer a release to a share of the boxes.

    Raises OperatorError if its signature does not match the release key in this program.
    """
    from web.relay.storage import stage_release  # noqa: PLC0415 - imports the SSH library

    if not 0 <= arguments.share <= 100:
        raise OperatorError("--share must be a percentage from 0 to 100")
    content = cli.read_argument(arguments.file)  # before `_enrolments` gives up root privileges
    enrolments = _enrolments(arguments, console)
    found = stage_release(enrolments, io.BytesIO(content), read_release_key(), arguments.share)
    print(f"{found.version} for {found.machine} is offered to {arguments.share} % of the boxes")
    return 0


def join(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Join a relay. If the box is running, it then connects to the relay.

    Raises OperatorError if joining fails.
    """
    directory = console.box(arguments)
    invitation = Invitation.decode(arguments.code)
    asyncio.run(join_relay(directory.root, invitation))
    wake_box(directory.wakeup_pipe)
    url = f"https://{invitation.name}"
    text = directory.settings_file.read_text("utf-8") if directory.settings_file.exists() else ""
    found = parse_settings(text, {}).server.app_url
    if not found:
        changed = change_settings(text, {"server.app_url": url})
        atomic_write(directory.settings_file, changed.encode())
        print(f"restart the box. Guests can then reach it at {url}")
    elif found != url:
        print(
            f"the box joined as {url}, but server.app_url is {found}. Change server.app_url and "
            "restart the box."
        )
    else:
        print(f"guests reach this box at {url}")
    return 0


async def join_relay(root: Path, invitation: Invitation) -> None:
    """Enrol this box at the relay and store its credentials for the relay in `root`.

    Raises OperatorError if this fails. The message says what to do.
    """
    import asyncssh  # noqa: PLC0415 - takes 5 MB

    from web.relay import dial  # noqa: PLC0415 - as above

    relay = invitation.relay
    try:
        access = await dial.join(invitation)
    except dial.Refused as refusal:
        if refusal.reason == dial.RELAY_OTHER_KEY:
            raise OperatorError(
                f"the machine at {relay.host}:{relay.port} is not the relay that issued the code. "
                "Check the relay's address before you try again."
            ) from None
        raise OperatorError(
            "the relay refuses this code, because it has been used, has expired or has been "
            "replaced. Ask for a new one."
        ) from None
    except (OSError, TimeoutError, UnicodeError, asyncssh.Error) as error:
        raise OperatorError(
            f"the relay at {relay.host}:{relay.port} does not answer ({str(error) or 'timeout'}). "
            "Check the internet connection, and whether the relay is running."
        ) from None
    access.save(access_file(root))
    forget_relay_copies(root)


def leave(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Disconnect this box from its relay, and delete the box's key for it.

    Raises OperatorError if the box has not joined a relay.
    """
    directory = console.box(arguments)
    file = access_file(directory.root)
    if not file.exists():
        raise OperatorError("this box has not joined a relay")
    file.unlink()
    sync(file.parent)
    wake_box(directory.wakeup_pipe)
    print("left the relay. Change server.app_url if guests now use another address.")
    return 0


def _root(arguments: argparse.Namespace, console: cli.Console) -> Path:
    """Return the relay's data directory. If run as root, continue as the directory's owner.

    Raises WrongUsage if no directory is specified, and OperatorError if it contains a box.
    """
    chosen = arguments.data or console.environ.get("VENUEBOX_DATA")
    if not chosen:
        raise cli.WrongUsage("specify the relay's directory with --data or VENUEBOX_DATA")
    directory = DataDirectory(Path(chosen).expanduser().absolute())
    become_owner(directory.root)
    if directory.holds_a_box():
        raise OperatorError(
            f"{directory.root} already contains a box. Specify another directory for the relay."
        )
    return directory.root


def _enrolments(arguments: argparse.Namespace, console: cli.Console) -> Enrolments:
    return Enrolments(_root(arguments, console))
