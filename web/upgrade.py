"""Before a new version changes a schema: a sealed, proven backup, with its progress."""

import logging
import os

from appliance.backup.making import Maker, back_up_before_upgrade
from appliance.commands.backup import tell
from appliance.commands.console import Console
from appliance.data_directory import DataDirectory
from appliance.settings import Settings
from appliance.upkeep.sd_notify import sd_notify

log = logging.getLogger(__name__)

_MORE_TIME = f"EXTEND_TIMEOUT_USEC={10 * 60 * 1_000_000}"  # a large box on a slow volume


def prepare_upgrade(directory: DataDirectory, settings: Settings, console: Console) -> None:
    """Log what was done, with a progress on a console; nothing where no schema changes.

    systemd hears that the start goes on. The caller holds the lock.
    """

    def tell_both(what: str, done: int, of: int) -> None:
        sd_notify(os.environ, _MORE_TIME)
        tell(what, done, of)

    maker = Maker(directory, settings, console.clock, console.tokens, console.zones, tell_both)
    said = back_up_before_upgrade(maker)
    if said:
        log.warning("%s", said)
