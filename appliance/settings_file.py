"""The settings file of a new box: every setting with its default and its meaning, switched off."""

import json
from itertools import groupby

from appliance.settings import describe_settings
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
