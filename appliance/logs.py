"""Log files: one JSON line per message, rotated by size, without personal data.

Log messages contain no guest data, and `log_exception` logs the location in the code instead of the
exception's message. Tests search the log for names, phone numbers and keys.
"""

import json
import logging
import os
import sys
from collections.abc import Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path

from appliance.clock import format_instant
from appliance.core.files import make_folder
from appliance.core.text import one_line

FILE = "venuebox.jsonl"
_OURS = ("appliance", "terminal_bridge", "web")
_BYTES, _FILES = 5_000_000, 9  # 50 MB including the current file


class JsonLines(logging.Formatter):
    """Formats a record as a JSON object with `at` (UTC), `level`, `from` and `message`."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line. Include an exception's type, but not its message."""
        line = {
            "at": format_instant(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "from": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False)


def stderr_is_journal(environ: Mapping[str, str]) -> bool:
    """Whether stderr goes to systemd's journal, which accepts priorities (sd-daemon(3))."""
    if "JOURNAL_STREAM" not in environ:
        return False
    found = os.fstat(sys.stderr.fileno())
    return environ["JOURNAL_STREAM"] == f"{found.st_dev}:{found.st_ino}"


def print_error(sentence: str, environ: Mapping[str, str]) -> None:
    """Write one sentence to stderr.

    If systemd reads stderr, the line starts with the priority for errors.
    """
    priority = "<3>" if stderr_is_journal(environ) else ""
    sys.stderr.write(f"{priority}venuebox: {one_line(sentence)}\n")


class ConsoleLines(logging.Formatter):
    """Formats a record for the console, with priorities for systemd if `has_priority` is True."""

    def __init__(self, *, has_priority: bool) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._has_priority = has_priority

    def format(self, record: logging.LogRecord) -> str:
        """Format a record.

        With `has_priority`, each line starts with `<3>` for an error or `<4>` for a warning.
        """
        text = super().format(record)
        if not self._has_priority:
            return text
        priority = "<3>" if record.levelno >= logging.ERROR else "<4>"
        return "\n".join(priority + line for line in text.split("\n"))


class _Quiet(RotatingFileHandler):
    """A handler that ignores write errors, such as a full disk."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Ignore the error. The console still shows warnings."""


def open_log(folder: Path) -> logging.Handler:
    """Start logging to files in `folder`. Returns the handler, which the caller may remove."""
    make_folder(folder)
    handler = _Quiet(folder / FILE, "a", _BYTES, _FILES, "utf-8", delay=True)
    handler.setFormatter(JsonLines())
    handler.setLevel(logging.INFO)
    root = logging.getLogger()
    for shown in root.handlers:  # the console shows only warnings and errors
        shown.setLevel(max(shown.level, logging.WARNING))
    root.addHandler(handler)
    # Do not log INFO messages of libraries, because they contain URLs and addresses.
    for name in _OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    return handler
