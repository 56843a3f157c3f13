"""Write `settings.toml` for a new box, and change settings in it without losing its comments."""

import json
import re
import tomllib
from collections.abc import Mapping
from importlib import resources

from appliance.core.errors import OperatorError
from appliance.core.settings import parse_settings


def settings_example() -> str:
    """Return the settings file that `venuebox init` writes, with all defaults commented out."""
    return resources.files("appliance.core").joinpath("settings.example.toml").read_text("utf-8")


def change_settings(text: str, changes: Mapping[str, str | int | bool | list[str]]) -> str:
    """Return `text`, the content of a settings file, with `changes` applied.

    `changes` maps `section.name` to the new value. Comments and all other lines are kept. Raises
    OperatorError if a value is not allowed, or if the file's layout is too unusual to edit
    automatically.
    """
    lines = text.split("\n") if text.strip() else settings_example().split("\n")
    for name, value in changes.items():
        # A JSON value is valid TOML, except that TOML requires DEL to be escaped.
        text_value = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        _change(lines, *name.split("."), value=text_value)
    changed = "\n".join(lines)
    parse_settings(changed, {})
    if _flat(changed) != _flat(text) | dict(changes):
        raise OperatorError("settings.toml has an unusual layout. Edit the file by hand.")
    return changed


def _change(lines: list[str], section: str, name: str, *, value: str) -> None:
    """Replace the line that sets or comments out the setting. If there is none, insert a line."""
    head = next((i for i, line in enumerate(lines) if line.strip() == f"[{section}]"), None)
    if head is None:
        # Insert the section before the [[readers]] tables, which must stay at the end of the file.
        first = next((i for i, line in enumerate(lines) if line.startswith("[[")), len(lines))
        lines[first:first] = [f"[{section}]", f"{name} = {value}", ""]
        return
    after = range(head + 1, len(lines))
    end = next((i for i in after if lines[i].lstrip().startswith("[")), len(lines))
    for pattern in (rf"\s*{name}\s*=", rf"#\s*{name}\s*="):
        for i in range(head + 1, end):
            if re.match(pattern, lines[i]):
                lines[i] = f"{name} = {value}"
                return
    lines.insert(head + 1, f"{name} = {value}")


def _flat(text: str) -> dict[str, object]:
    document = tomllib.loads(text)
    return {
        f"{section}.{name}": value
        for section, members in document.items()
        if isinstance(members, dict)
        for name, value in members.items()
    }
