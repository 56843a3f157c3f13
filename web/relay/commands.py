"""`venuebox relay`: connect this box to a relay, or disconnect it."""

import argparse
import asyncio
import logging
from pathlib import Path

from appliance.commands import console as cli
from appliance.core.data_directory import wake_box
from appliance.core.errors import OperatorError
from appliance.core.files import sync
from appliance.core.i18n import mark as _
from appliance.core.saved_settings import SettingFixed, save_settings
from appliance.core.ssh import ensure_key
from appliance.relay import Relay, relay_file

log = logging.getLogger(__name__)


def add(commands: cli.Commands) -> None:
    """Add the commands to the command line."""
    group = cli.add_group(commands, "relay", "be reached through a public server")
    parser = cli.add_command(group, "join", join, "connect this box to a relay", "--data")
    meaning = "what venuebox-relay-add printed (default: show this box's key for it)"
    parser.add_argument("line", metavar="LINE", nargs="?", help=meaning)
    cli.add_command(group, "leave", leave, "disconnect this box from its relay", "--data")


def join(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Join a relay. If the box is running, it then connects to the relay.

    Without a line, print the box's public key. Raises OperatorError if joining fails.
    """
    directory = console.box(arguments)
    if not arguments.line:
        print("this box's key. Send it to the relay's operator, who sends you a line:")
        print(ensure_key(directory.root))
        return 0
    relay = Relay.parse(arguments.line)
    asyncio.run(join_relay(directory.root, relay))
    url = f"https://{relay.name}"
    try:
        if console.settings(directory).server.app_url != url:
            save_settings(directory.settings_file, {"server.app_url": url}, console.environ)
    except SettingFixed as fixed:
        print(f"the box joined as {url}. {fixed}")
    else:
        print(f"guests reach this box at {url}")
    finally:
        wake_box(directory.wakeup_pipe)
    return 0


async def join_relay(root: Path, relay: Relay) -> None:
    """Test the connection to the relay, and store the relay in the data directory `root`.

    Does not test it if the box has already joined the same relay. Raises NotJoined if the line
    cannot be opened.
    """
    import asyncssh  # noqa: PLC0415 - takes 5 MB

    from web.relay import line  # noqa: PLC0415 - as above

    ensure_key(root)
    if relay == _read(root):
        return
    try:
        (await line.open_line(relay, root, asyncio.Protocol, lambda _caller: False)).abort()
    except line.Refused as refusal:
        raise NotJoined(_REFUSALS[refusal.reason], relay) from None
    except (OSError, TimeoutError, UnicodeError, asyncssh.Error) as error:
        log.warning("relay: %s does not answer: %s", relay.host, str(error) or "timeout")
        raise NotJoined(_SILENT, relay) from None
    relay.save(root)


class NotJoined(OperatorError):
    """Raised if the line to a relay cannot be opened.

    `sentence` is the translatable text, and `at` fills its placeholder.
    """

    def __init__(self, sentence: str, relay: Relay) -> None:
        self.sentence, self.at = sentence, f"{relay.host}:{relay.port}"
        super().__init__(sentence % {"at": self.at})


_SILENT = _(
    "The relay at %(at)s does not answer. Check the internet connection, and whether the relay is "
    "running."
)
_REFUSALS = {
    "relay_other_key": _(
        "The machine at %(at)s is not the relay that this line is from. Check the relay's address "
        "with its operator."
    ),
    "relay_revoked": _(
        "The relay at %(at)s does not know this box's key. Send the key to the relay's operator."
    ),
    "relay_taken": _(
        "The relay at %(at)s does not give this box its name. Another box with the same key may be "
        "connected, or the line is out of date: ask the relay's operator for a new one."
    ),
}


def _read(root: Path) -> Relay | None:
    try:
        return Relay.load(root)
    except OperatorError:  # a damaged file is replaced
        return None


def leave(arguments: argparse.Namespace, console: cli.Console) -> int:
    """Disconnect this box from its relay. Its key is kept.

    Raises OperatorError if the box has not joined a relay.
    """
    directory = console.box(arguments)
    file = relay_file(directory.root)
    if not file.exists():
        raise OperatorError("this box has not joined a relay")
    file.unlink()
    sync(file.parent)
    wake_box(directory.wakeup_pipe)
    print("left the relay. Change server.app_url if guests now use another address.")
    return 0
