"""The log in files: a line of JSON for each message, within a size, without personal data."""

import json
import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

from appliance.clock import format_instant
from appliance.core.files import make_folder

FILE = "venuebox.jsonl"
_OURS = ("appliance", "terminal_bridge", "web")
_BYTES, _FILES = 5_000_000, 9  # with the one being written, 50 MB


class JsonLines(logging.Formatter):
    """`{"at", "level", "from", "message"}`, in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; what an exception held in its hands is left out."""
        line = {
            "at": format_instant(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "from": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False)


class _Quiet(RotatingFileHandler):
    """A disk that takes no log keeps nobody from working."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the library's name
        """Leave the message to the console."""


def open_log(folder: Path, *, size: int = _BYTES, files: int = _FILES) -> logging.Handler:
    """Also write the log to `folder` from now on; the handler, which the caller may remove."""
    make_folder(folder)
    handler = _Quiet(folder / FILE, maxBytes=size, backupCount=files, encoding="utf-8", delay=True)
    handler.setFormatter(JsonLines())
    handler.setLevel(logging.INFO)
    root = logging.getLogger()
    for shown in root.handlers:  # the console stays as it is
        shown.setLevel(max(shown.level, logging.WARNING))
    root.addHandler(handler)
    for name in _OURS:  # what libraries tell of each request names links and addresses
        logging.getLogger(name).setLevel(logging.INFO)
    return handler
