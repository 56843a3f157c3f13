"""settings.toml from the portal: what stands in it, what is in force, and how it is changed."""

import asyncio
from collections.abc import Iterable, Mapping

from aiohttp import web

from appliance.data_directory import DataDirectory, write_file
from appliance.errors import Trouble, ValidationError
from appliance.settings import Settings, parse_settings
from appliance.settings_file import change_settings
from web.portal.context import BOX, RESTART
from web.portal.forms import field_error

# One writes after the other: what both of two forms say is kept.
SAVING = web.AppKey("saving", asyncio.Lock)


def saved_settings(request: web.Request) -> Settings:
    """What stands in settings.toml; those in force where it cannot be read."""
    try:
        return parse_settings(directory_of(request).settings_file.read_text("utf-8"), {})
    except (OSError, UnicodeDecodeError, Trouble):
        return request.app[BOX].settings


def waits_for_restart(request: web.Request) -> bool:
    """Whether mail or address were saved since the box started."""
    if RESTART not in request.app:
        return False
    saved, used = saved_settings(request), request.app[BOX].settings
    return saved.mail != used.mail or saved.server.app_url != used.server.app_url


async def save_settings(
    request: web.Request, changes: Mapping[str, str | int | bool | list[str]]
) -> None:
    """Write them to settings.toml; ValidationError for what is not allowed there."""
    file = directory_of(request).settings_file
    async with request.app[SAVING]:
        try:
            text = file.read_text("utf-8") if file.exists() else ""
            changed = change_settings(text, changes)
        except (OSError, UnicodeDecodeError, Trouble) as trouble:
            raise _declined(changes, str(trouble)) from None
        await asyncio.to_thread(write_file, file, changed.encode())


def _declined(changes: Iterable[str], trouble: str) -> ValidationError:
    """Of which field, and what it should be; `trouble` begins with the name of the setting."""
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
    """The box's data directory."""
    return DataDirectory(request.app[BOX].live.database.path.parent)
