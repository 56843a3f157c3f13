"""Settings that the portal changes. They are stored apart from `settings.toml`, which prevails."""

import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from appliance.core.edited_files import parse_edited
from appliance.core.errors import OperatorError
from appliance.core.files import atomic_write
from appliance.core.settings import (
    SAVED_FILE,
    Settings,
    parse_settings,
    read_saved,
    read_text,
    variable_of,
)

Changes = Mapping[str, str | int | bool | list[str]]


class SettingFixed(OperatorError):
    """Raised for a setting that `settings.toml` or an environment variable sets."""

    def __init__(self, name: str, place: str) -> None:
        self.name, self.place = name, place
        super().__init__(f"{name} is set in {place}. Change it there.")


def settings_example() -> str:
    """Return the settings file that `venuebox init` writes, with all defaults commented out."""
    return resources.files("appliance.core").joinpath("settings.example.toml").read_text("utf-8")


def save_settings(file: Path, changes: Changes, environ: Mapping[str, str]) -> Settings:
    """Store `changes`, new values by `section.name`, and return the settings then in force.

    `file` is `settings.toml`. Raises SettingFixed if it or an environment variable sets one of the
    names, and OperatorError if a value is not allowed. Then nothing has changed.
    """
    text, saved = read_text(file), read_saved(file)
    document = parse_edited(text, file.name)
    for name, value in changes.items():
        section, _, item = name.partition(".")
        if item in document.get(section, {}):
            raise SettingFixed(name, file.name)
        if variable_of(section, item) in environ:
            raise SettingFixed(name, variable_of(section, item))
        saved = {**saved, section: {**saved.get(section, {}), item: value}}
    settings = parse_settings(text, environ, file.name, saved)
    atomic_write(file.parent / SAVED_FILE, json.dumps(saved, indent=1).encode())
    return settings
