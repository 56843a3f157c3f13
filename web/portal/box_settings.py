"""settings.toml in the portal: read, compare with the active settings, change."""

import asyncio
from collections.abc import Iterable, Mapping

from aiohttp import web

from appliance.box import Box
from appliance.core.data_directory import DataDirectory
from appliance.core.errors import OperatorError, ValidationError
from appliance.core.files import atomic_write
from appliance.core.settings import Settings, change_settings, parse_settings, read_settings
from appliance.staff.audit_log import record_audit
from web.portal.forms import field_error
from web.portal.guard import actor_of
from web.portal.session import BOX, HOUSE, RESTART

Changes = Mapping[str, str | int | bool | list[str]]


class Saved:
    """The contents of settings.toml at the start, and the lock for changing it."""

    def __init__(self, at_start: Settings | None) -> None:
        self.at_start = at_start
        self.lock = asyncio.Lock()  # two forms at once must not overwrite each other


SAVED = web.AppKey("saved", Saved)


def read_file(box: Box) -> Settings | None:
    """Return settings.toml without environment variables; None if the next start would fail."""
    try:
        return read_settings(_directory(box).settings_file, {})
    except OperatorError:
        return None


def saved_settings(request: web.Request) -> Settings:
    """Return the settings in settings.toml, or the active ones if it cannot be read."""
    return read_file(request.app[BOX]) or request.app[BOX].settings


def waits_for_restart(request: web.Request) -> bool:
    """Return whether settings.toml has changed since the start, in the portal or by hand."""
    if RESTART not in request.app:
        return False
    return read_file(request.app[BOX]) not in (None, request.app[SAVED].at_start)


def next_settings(request: web.Request) -> Settings:
    """Return the settings of the next start if a restart is pending, else the active ones."""
    return saved_settings(request) if waits_for_restart(request) else request.app[BOX].settings


async def save_settings(request: web.Request, changes: Changes) -> None:
    """Write changed settings to settings.toml, and their names to the audit log.

    Raises ValidationError for an invalid value.
    """
    file = directory_of(request).settings_file
    async with request.app[SAVED].lock:
        try:
            text = file.read_text("utf-8") if file.exists() else ""
            known = parse_settings(text, {})
            wished = {
                name: value for name, value in changes.items() if setting(known, name) != value
            }
            changed = change_settings(text, wished)
        except (OSError, UnicodeDecodeError, OperatorError) as trouble:
            raise _declined(changes, str(trouble)) from None
        if not wished:
            return
        await asyncio.to_thread(atomic_write, file, changed.encode())
    await request[HOUSE].database.write(
        record_audit, actor_of(request), "settings_changed", name=", ".join(wished)
    )


def setting(settings: Settings, name: str) -> object:
    """Return the value of `section.name`."""
    section, _, item = name.partition(".")
    return getattr(getattr(settings, section), item)


def _declined(changes: Iterable[str], trouble: str) -> ValidationError:
    """Return the error for the setting whose name starts `trouble`."""
    wrong = next((name for name in changes if trouble.startswith(f"{name} is ")), None)
    if wrong == "server.app_url":
        return field_error(
            "app_url",
            "une adresse entière sans chemin, telle que https://box.example.com.",
            "a whole address without a path, such as https://box.example.com.",
        )
    if wrong == "mail.sender":
        return field_error(
            "sender",
            "l'adresse e-mail d'où partent les lettres.",
            "the email address that letters come from.",
        )
    if wrong is not None:
        return field_error(wrong.partition(".")[2], "une valeur permise.", "an allowed value.")
    return field_error(
        "settings",
        "d'abord un fichier settings.toml que la box puisse modifier : voyez qui l'a installée.",
        "a settings.toml that the box can change: ask whoever installed it.",
    )


def directory_of(request: web.Request) -> DataDirectory:
    """Return the box's data directory."""
    return _directory(request.app[BOX])


def _directory(box: Box) -> DataDirectory:
    return DataDirectory(box.live.database.path.parent)
