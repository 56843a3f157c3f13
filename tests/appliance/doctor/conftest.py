"""A healthy patient: a fresh box on a machine that has everything, and ways to make it ill."""

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.backup.shelf import Record, write_record
from appliance.clock import SystemClock, newest_zone_database
from appliance.data_directory import DataDirectory
from appliance.doctor.check import Check
from appliance.doctor.examination import examine
from appliance.doctor.patient import Machine, Patient
from appliance.settings import Settings
from appliance.store.session import session
from appliance.tokens import Tokens
from tests.appliance.commands.conftest import VENUE
from tests.conftest import with_settings
from web.main import main

GIB = 1 << 30
ROUTE = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
DEFAULT = "eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
LOCAL = "eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n"


@dataclass
class Ward:
    """The patient, and what the doctor says of it."""

    patient: Patient

    @property
    def root(self) -> Path:
        return self.patient.directory.root

    def examine(self) -> list[Check]:
        return examine(self.patient)

    def find(self, name: str) -> Check | None:
        """The finding of that name."""
        return next((check for check in self.examine() if check.name == name), None)

    def status(self, name: str) -> str | None:
        found = self.find(name)
        return found and found.status

    def become(self, **changes: Any) -> None:
        self.patient = replace(self.patient, **changes)

    def on(self, **changes: Any) -> None:
        """Move to another machine."""
        self.become(machine=replace(self.patient.machine, **changes))

    def set(self, **sections: dict[str, Any]) -> None:
        """Other settings."""
        self.become(settings=with_settings(**sections))

    def write(self, sql: str, environment: str = "live", **values: Any) -> None:
        """Reach into a database."""
        path = self.root / f"{environment}.db"
        with session(path, SystemClock(), Tokens(), newest_zone_database()) as tx:
            tx.execute(sql, values)


def a_volume(*, free=100 * GIB, files=10**6, left=10**6):
    """What statvfs says of one."""
    return SimpleNamespace(f_bavail=free // 4096, f_frsize=4096, f_files=files, f_favail=left)


@pytest.fixture(scope="session")
def fresh_box(tmp_path_factory) -> Path:
    """The data directory that `init` makes: each test works on its own copy."""
    folder = tmp_path_factory.mktemp("doctor")
    (folder / "venue.toml").write_text(VENUE, "utf-8")
    root = folder / "box"
    assert main(["init", "--venue", str(folder / "venue.toml"), "--data", str(root)], {}) == 0
    return root


@pytest.fixture
def ward(tmp_path, fresh_box) -> Ward:
    root = shutil.copytree(fresh_box, tmp_path / "box")
    write_record(root, Record(at=SystemClock().now(), file="riad-atlas", size=1))
    proc = tmp_path / "proc"
    (proc / "net").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 4000000 kB\nMemAvailable:  2000000 kB\n")
    (proc / "net" / "route").write_text(ROUTE + LOCAL + DEFAULT)
    os.mkfifo(root / "poke", 0o600)
    listening = os.open(root / "poke", os.O_RDWR | os.O_NONBLOCK)
    machine = Machine(statvfs=lambda _: a_volume(), proc=proc, clock_state=lambda: 0,
                      ask=lambda _: 200)  # fmt: skip
    settings: Settings = with_settings(
        server={"app_url": "https://box.example"},
        mail={"host": "mail.example", "sender": "riad@box.example", "user": "u", "password": "p"},
    )
    patient = Patient(DataDirectory(root), settings, SystemClock(), newest_zone_database(),
                      machine=machine)  # fmt: skip
    yield Ward(patient)
    os.close(listening)
