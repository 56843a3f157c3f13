"""Small commands: version, clock, doctor, the page of the recovery kit."""

import json
import zipfile
from importlib import resources


def test_version_tells_what_runs_here(program):
    assert program("version") == 0

    kinds = [line.split()[0] for line in program.out.splitlines()]
    assert kinds == ["venuebox", "Python", "SQLite", "tz"]
    first = program.out.splitlines()[0]
    assert program("--version") == 0
    assert program.out.splitlines() == [first]


def test_a_newer_tz_database_in_the_data_directory_is_the_one_that_counts(box, venue_file):
    rules = resources.files("tzdata.zoneinfo.Africa").joinpath("Casablanca").read_bytes()
    (box.data / "tz").mkdir()
    with zipfile.ZipFile(box.data / "tz" / "tzdata-2031.1-py2.py3-none-any.whl", "w") as wheel:
        wheel.writestr("tzdata/zoneinfo/Africa/Casablanca", rules)
        wheel.writestr("tzdata/zoneinfo/tzdata.zi", "# version 2031a\n")

    box("version")
    assert "tz database 2031a (own)" in box.out
    box("doctor", "--json")
    [found] = [c for c in json.loads(box.out)["checks"] if c["name"] == "time_zones"]
    assert found["status"] == "ok"
    assert "2031a (own)" in found["finding"]["en"]
    assert box("venue", "apply", str(box.data.parent / "venue.toml")) == 0


def test_json_is_what_the_readme_says(box):
    box("doctor", "--json")

    told = json.loads(box.out)
    assert set(told) == {"status", "checks"}
    names = {"name", "status", "finding", "remedy", "since"}
    assert all(set(check) == names for check in told["checks"])
    assert {check["status"] for check in told["checks"]} <= {"ok", "warn", "fail"}
    off = next(check for check in told["checks"] if check["name"] == "box")
    assert set(off["remedy"]) == {"fr", "en", "ar"}


def test_it_exits_with_1_when_something_fails(box):
    (box.data / "settings.toml").chmod(0o644)

    assert box("doctor") == 1
    assert "FAIL  permissions" in box.out


def test_settings_that_stop_the_box_do_not_stop_the_doctor(box):
    (box.data / "settings.toml").write_text("[server]\nport = 'x'\n")

    assert box("doctor") == 1
    assert "server.port" in box.out


def test_the_page_of_the_recovery_kit_is_closed_to_others(box, tmp_path):
    page = tmp_path / "kit.html"
    page.touch(mode=0o644)

    assert box("backup", "kit", "--html", str(page)) == 0

    assert page.stat().st_mode & 0o077 == 0
