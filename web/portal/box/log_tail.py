"""The end of the box's own log, for a person to read."""

import json
from pathlib import Path

from appliance.log_files import FILE

_BYTES = 16_384
_LINES = 60


def read_tail(folder: Path) -> list[str]:
    """The last lines, the latest at the end; none where nothing was written yet."""
    try:
        with (folder / FILE).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    lines = text.splitlines()[1 if size > _BYTES else 0 :]  # the first may be cut in two
    return [_in_words(line) for line in lines[-_LINES:]]


def _in_words(line: str) -> str:
    """`2026-11-21 19:05:01 warning web.serve: some requests …`; what is no such line, as it is."""
    try:
        one = json.loads(line)
        at = str(one["at"])[:19].replace("T", " ")
        error = f" ({one['error']})" if "error" in one else ""
        return f"{at} {one['level']} {one['from']}: {one['message']}{error}"
    except (ValueError, KeyError, TypeError):
        return line
