"""A sealed backup of the box as it is, before a new version changes it."""

from appliance.accidents import log_accident
from appliance.backup.making import Maker
from appliance.errors import Trouble
from appliance.store.migrate import find_upgrade


def back_up_before_upgrade(maker: Maker) -> str:
    """Make a proven backup if a schema is about to change; what is to be said of it, or "".

    Never a reason not to start: `migrate` keeps a plain copy of each database too, and does not
    go on without it. The caller holds the lock, and nobody serves the box yet.
    """
    upgrade = find_upgrade(maker.directory.databases)
    if upgrade is None:
        return ""
    old, new = upgrade
    try:
        path, _ = maker.make()
    except Trouble as trouble:
        return f"schema {old} becomes {new} without a sealed backup before ({trouble})"
    except Exception as error:  # noqa: BLE001 - whatever it was, the plain copy is kept
        log_accident("the backup before an upgrade", error)
        return f"schema {old} becomes {new} without a sealed backup before: see the log"
    return f"schema {old} becomes {new}; the box as it was is in {path}"
