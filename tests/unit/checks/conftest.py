"""A healthy new box on a healthy machine, and ways to damage it."""

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.backup.catalogue import Record, write_record
from appliance.checks.check import Check, CheckContext, Machine
from appliance.checks.examine import examine
from appliance.clock import SystemClock, newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.i18n import load_languages
from appliance.core.settings import Settings
from appliance.core.tokens import Tokens
from appliance.database.integrity import session
from tests.conftest import with_settings
from tests.unit.commands.conftest import made_box  # noqa: F401 - a fixture

GIB = 1 << 30


@dataclass
class Ward:
    """A box and its checks."""

    context: CheckContext

    @property
    def root(self) -> Path:
        return self.context.directory.root

    def examine(self) -> list[Check]:
        """Return every finding, after checking its translations and its remedy."""
        found = examine(self.context)
        assert all((check.remedy is None) == (check.status == "ok") for check in found)
        for said in [part for check in found for part in (check.finding, check.remedy) if part]:
            assert all(said.text(language) for language in load_languages().all())
        return found

    def find(self, name: str) -> Check | None:
        """Return the finding of the check with this name."""
        return next((check for check in self.examine() if check.name == name), None)

    def status(self, name: str) -> str | None:
        found = self.find(name)
        return found and found.status

    def become(self, **changes: Any) -> None:
        self.context = replace(self.context, **changes)

    def on(self, **changes: Any) -> None:
        """Change the machine."""
        self.become(machine=replace(self.context.machine, **changes))

    def set(self, **sections: dict[str, Any]) -> None:
        """Change the settings."""
        self.become(settings=with_settings(**sections))

    def write(self, sql: str, environment: str = "live", **values: Any) -> None:
        """Run a statement on a database."""
        path = self.root / f"{environment}.db"
        with session(path, SystemClock(), Tokens(), newest_zone_database()) as tx:
            tx.execute(sql, values)


def english(check: Check) -> str:
    """Return the finding in English."""
    return check.finding.text(load_languages().get("en"))


def a_volume(*, free=100 * GIB, files=10**6, left=10**6, flag=0):
    """Return a result of statvfs."""
    return SimpleNamespace(
        f_bavail=free // 4096, f_frsize=4096, f_files=files, f_favail=left, f_flag=flag
    )


@pytest.fixture
def ward(tmp_path, made_box) -> Ward:  # noqa: F811 - the fixture
    root = shutil.copytree(made_box, tmp_path / "box")
    write_record(root, Record(at=SystemClock().now(), file="riad-atlas", size=1))
    os.mkfifo(root / "poke", 0o600)
    listening = os.open(root / "poke", os.O_RDWR | os.O_NONBLOCK)
    machine = Machine(statvfs=lambda _: a_volume(), is_synchronised=lambda: True,
                      device=hash, has_way_out=lambda: True, ask=lambda _: 200)  # fmt: skip
    settings: Settings = with_settings(
        server={"app_url": "https://box.example"},
        mail={"host": "mail.example", "sender": "riad@box.example", "user": "u", "password": "p"},
    )
    context = CheckContext(DataDirectory(root), settings, SystemClock(), newest_zone_database(),
                      machine=machine)  # fmt: skip
    yield Ward(context)
    os.close(listening)
