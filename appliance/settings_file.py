"""The settings file of a new box: every setting with its default and its meaning, switched off."""

import json
import re
import tomllib
from collections.abc import Mapping
from itertools import groupby

from appliance.errors import Trouble
from appliance.settings import describe_settings, parse_settings
from appliance.settings_readers import EXAMPLE

_HEAD = """\
# Settings of this box. A line without # is in force from the next start on; each setting can
# also be given as an environment variable, VENUEBOX_SECTION_NAME.
"""


def settings_example() -> str:
    """What `venuebox init` writes and `packaging/settings.example.toml` shows."""
    lines = [_HEAD]
    for section, rows in groupby(describe_settings(), key=lambda row: row[0].split(".")[0]):
        lines.append(f"[{section}]")
        for name, _variable, default, meaning in rows:
            # JSON's texts, numbers, truths and lists are TOML's too.
            lines.append(f"# {meaning}")
            lines.append(f"#{name.split('.')[1]} = {json.dumps(default)}")
        lines.append("")
    return "\n".join(lines) + EXAMPLE


def change_settings(text: str, changes: Mapping[str, str | int | bool | list[str]]) -> str:
    """The text of a settings file with these settings (`section.name`) in force.

    Comments and everything else stay as they are. Trouble when a value is not allowed, or when
    the file is written in a way that only a person should change.
    """
    lines = text.split("\n") if text.strip() else settings_example().split("\n")
    for name, value in changes.items():
        _change(lines, *name.split("."), value=_toml(value))
    changed = "\n".join(lines)
    _check_only(text, changed, changes)
    return changed


def _change(lines: list[str], section: str, name: str, *, value: str) -> None:
    """Replace the line that says it, else the one that is switched off, else begin one."""
    head = next((i for i, line in enumerate(lines) if line.strip() == f"[{section}]"), None)
    if head is None:
        # Before the tables of readers, which would swallow it.
        first = next((i for i, line in enumerate(lines) if line.startswith("[[")), len(lines))
        lines[first:first] = [f"[{section}]", f"{name} = {value}", ""]
        return
    after = range(head + 1, len(lines))
    end = next((i for i in after if lines[i].lstrip().startswith("[")), len(lines))
    for said in (rf"\s*{name}\s*=", rf"#\s*{name}\s*="):
        for i in range(head + 1, end):
            if re.match(said, lines[i]):
                lines[i] = f"{name} = {value}"
                return
    lines.insert(head + 1, f"{name} = {value}")


def _check_only(before: str, after: str, changes: Mapping[str, object]) -> None:
    """Trouble unless the file can be read and differs in `changes` alone."""
    parse_settings(after, {})
    was, is_ = _flat(before), _flat(after)
    wanted = {**was, **changes}
    if is_ != wanted:
        raise Trouble("settings.toml is written in a way that only a person should change")


def _flat(text: str) -> dict[str, object]:
    document = tomllib.loads(text)
    return {
        f"{section}.{name}": value
        for section, members in document.items()
        if isinstance(members, dict)
        for name, value in members.items()
    }


def _toml(value: object) -> str:
    """JSON's texts are TOML's, but for one character that TOML wants escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
