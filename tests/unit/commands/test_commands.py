"""Small commands: version, clock, doctor, the page of the recovery kit."""

import json


def test_version_tells_what_runs_here(program):
    assert program("version") == 0

    kinds = [line.split()[0] for line in program.out.splitlines()]
    assert kinds == ["venuebox", "Python", "SQLite", "tz"]
    first = program.out.splitlines()[0]
    assert program("--version") == 0
    assert program.out.splitlines() == [first]


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
