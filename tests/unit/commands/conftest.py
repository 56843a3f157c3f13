"""Fixtures for tests of commands: the program in this process, and a box made by `init`."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.clock import SystemClock, newest_zone_database
from appliance.core.tokens import Tokens
from appliance.database.integrity import session
from tests.machine import on_this_machine
from web.main import main

VENUE = """
name = "Riad Atlas"
slug = "riad-atlas"

[[tables]]
number = "T1"
name = "Terrasse 1"
capacity_min = 2
capacity_max = 4
minimum_spend = 500

[[tables]]
number = "T2"
capacity_max = 2

[[slots]]
name = "Dîner"
start = "19:30"
end = "22:00"
"""


@dataclass
class Program:
    """`venuebox`, with the output of its last command."""

    capsys: pytest.CaptureFixture
    data: Path
    out: str = ""
    err: str = ""

    def __call__(self, *argv: str) -> int:
        """Run a command without adding `--data`. Return its exit status."""
        status = main([*argv], {"VENUEBOX_DATA": str(self.data)})
        self.out, self.err = self.capsys.readouterr()
        return status

    def json(self, *argv: str):
        """Run a command that must succeed. Return its JSON output."""
        assert self(*argv, "--json") == 0, self.err
        return json.loads(self.out)

    def json_lines(self, *argv: str):
        """Run a command that must succeed. Return its output, one JSON value per line."""
        assert self(*argv, "--json") == 0, self.err
        return [json.loads(line) for line in self.out.splitlines()]

    def transaction(self, environment: str = "live"):
        """Run a transaction in the way a command does while the box runs."""
        path = self.data / f"{environment}.db"
        return session(path, SystemClock(), Tokens(), newest_zone_database())

    def complaint(self, *argv: str, status: int = 1) -> str:
        """Run a command that must fail with `status`. Return its error message."""
        assert self(*argv) == status
        assert self.out == ""
        assert self.err.count("\n") == 1
        assert self.err.startswith("venuebox")
        return self.err


@pytest.fixture
def program(tmp_path, capsys):
    """The program with an empty directory."""
    return Program(capsys, tmp_path / "box")


@pytest.fixture
def venue_file(tmp_path):
    """A venue file with two tables."""
    path = tmp_path / "venue.toml"
    path.write_text(VENUE, "utf-8")
    return path


@pytest.fixture(scope="session")
def made_box(tmp_path_factory):
    """A box that `init` made once. Each test works on its own copy."""
    directory = tmp_path_factory.mktemp("made")
    (directory / "venue.toml").write_text(VENUE, "utf-8")
    argv = ["init", "--venue", str(directory / "venue.toml")]
    with on_this_machine():
        assert main(argv, {"VENUEBOX_DATA": str(directory / "box")}) == 0
    return directory / "box"


@pytest.fixture
def box(program, made_box):
    """The program with a copy of that box."""
    shutil.copytree(made_box, program.data)
    return program
