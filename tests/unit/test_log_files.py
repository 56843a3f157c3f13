"""The log files contain JSON lines of our own packages and have a limited size."""

import json
import logging
import os
import sys

import pytest

from appliance import logs
from appliance.core.errors import log_exception
from appliance.logs import ConsoleLines, open_log, print_error


@pytest.fixture(autouse=True)
def handler(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "_BYTES", 2000)
    monkeypatch.setattr(logs, "_FILES", 3)
    levels = {shown: shown.level for shown in logging.getLogger().handlers}
    made = open_log(tmp_path / "log")
    yield made
    logging.getLogger().removeHandler(made)
    made.close()
    for shown, level in levels.items():
        shown.setLevel(level)
    for name in ("appliance", "terminal_bridge", "web"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def lines(folder):
    return [json.loads(line) for line in (folder / "log/venuebox.jsonl").read_text().splitlines()]


def test_a_log_message_is_one_line_of_json(tmp_path):
    logging.getLogger("appliance.upkeep").warning("upkeep waits %s", "a minute")

    [line] = lines(tmp_path)
    assert line.pop("at").endswith("Z")
    assert line == {"level": "warning", "from": "appliance.upkeep",
                    "message": "upkeep waits a minute"}  # fmt: skip


def test_a_logged_exception_shows_its_place_but_not_its_data(tmp_path):
    guest = "Salma " + "Idrissi " + "+2126" + "00000001"
    try:
        int(guest)
    except ValueError as error:
        log_exception("parsing", error)
        logging.getLogger("web").exception("it failed")

    text = (tmp_path / "log/venuebox.jsonl").read_text()
    assert "parsing failed: ValueError" in text
    assert "Idrissi" not in text
    assert "212600000001" not in text


def test_request_messages_of_libraries_are_not_logged(tmp_path):
    logging.getLogger("aiohttp.access").info("GET /access/secret")
    logging.getLogger("appliance").info("the clock is confirmed")

    assert [line["message"] for line in lines(tmp_path)] == ["the clock is confirmed"]


def test_the_log_files_stay_within_their_size_limit(tmp_path):
    for number in range(500):
        logging.getLogger("appliance").warning("message %d", number)

    files = list((tmp_path / "log").iterdir())
    assert len(files) == 4
    assert sum(file.stat().st_size for file in files) <= 8000
    assert "message 499" in (tmp_path / "log/venuebox.jsonl").read_text()


@pytest.mark.parametrize(
    ("has_priority", "level", "expected"),
    [
        (True, logging.ERROR, ["<3>ERROR web: a", "<3>b"]),
        (True, logging.WARNING, ["<4>WARNING web: a", "<4>b"]),
        (False, logging.ERROR, ["ERROR web: a", "b"]),
    ],
)
def test_each_line_in_the_journal_has_its_priority(has_priority, level, expected):
    record = logging.LogRecord("web", level, "", 0, "a\nb", None, None)

    assert ConsoleLines(has_priority=has_priority).format(record).split("\n") == expected


def test_a_console_message_has_a_priority_only_if_the_journal_reads_it(capfd):
    found = os.fstat(sys.stderr.fileno())
    for inode in (found.st_ino, found.st_ino + 1):
        print_error("broken", {"JOURNAL_STREAM": f"{found.st_dev}:{inode}"})
    print_error("broken", {})

    assert capfd.readouterr().err.split("\n")[:3] == [
        "<3>venuebox: broken", "venuebox: broken", "venuebox: broken",
    ]  # fmt: skip
