"""A new version backs up the old data, logs it, migrates and runs."""

import re
import signal
import subprocess
import sys

import pytest

from appliance.backup.catalogue import list_backups
from appliance.database.integrity import read_schema_number
from tests.journeys.box_process import clean_environ
from tests.unit.backup.making import a_box_with_guests

pytestmark = [pytest.mark.process, pytest.mark.slow]

NEW_VERSION = """
import sys
from appliance.database import migrate
from web.main import main
known = migrate.list_migrations()
wanted = [*known, (len(known) + 1, "CREATE TABLE later (x)")]
migrate.list_migrations = lambda: wanted
sys.exit(main(["serve", "--data", sys.argv[1], "--host", "127.0.0.1", "--port", "0"]))
"""


def start_and_stop(root):
    """Start the new version and return its standard error."""
    process = subprocess.Popen(
        [sys.executable, "-c", NEW_VERSION, str(root)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environ(),
    )  # fmt: skip
    try:
        for line in process.stdout:
            if line.startswith("ready "):
                process.send_signal(signal.SIGTERM)
                break
        _, said = process.communicate()
    finally:
        process.kill()
    assert process.returncode == 0, said
    return said


def test_a_new_version_backs_up_migrates_and_goes_on(tmp_path):
    box = a_box_with_guests(tmp_path)
    live, test = box.directory.databases
    old = read_schema_number(live)

    said = start_and_stop(box.root)

    [(backup, header)] = list_backups(box.root / "backups")
    assert re.search(
        rf"schema {old} becomes {old + 1}; the backup from before the upgrade is \S+", said
    )
    assert str(backup) in said
    assert header.schema == old
    assert (read_schema_number(live), read_schema_number(test)) == (old + 1, old + 1)

    assert "becomes" not in start_and_stop(box.root), "the next start has nothing to upgrade"
    assert len(list_backups(box.root / "backups")) == 1
