"""Short commands: version, clock, doctor, the file of the recovery kit."""

import json


def test_the_version_command_prints_the_running_version(program):
    assert program("version") == 0

    kinds = [line.split()[0] for line in program.out.splitlines()]
    assert kinds == ["venuebox", "Python", "SQLite", "tz"]
    first = program.out.splitlines()[0]
    assert program("--version") == 0
    assert program.out.splitlines() == [first]


def test_the_json_output_has_the_documented_form(box):
    box("doctor", "--json")

    told = json.loads(box.out)
    assert set(told) == {"status", "checks"}
    names = {"name", "status", "finding", "remedy", "since"}
    assert all(set(check) == names for check in told["checks"])
    assert {check["status"] for check in told["checks"]} <= {"ok", "warn", "fail"}
    off = next(check for check in told["checks"] if check["name"] == "box")
    assert set(off["remedy"]) == {"fr", "en", "ar"}


def test_doctor_exits_with_1_if_a_check_fails(box):
    (box.data / "settings.toml").chmod(0o644)

    assert box("doctor") == 1
    assert "FAIL  permissions" in box.out


def test_invalid_settings_stop_the_box_but_not_the_doctor(box):
    (box.data / "settings.toml").write_text("[server]\nport = 'x'\n")

    assert box("doctor") == 1
    assert "server.port" in box.out


def test_the_file_of_the_recovery_kit_is_readable_only_by_its_owner(box, tmp_path):
    page = tmp_path / "kit.html"
    page.touch(mode=0o644)

    assert box("backup", "kit", "--html", str(page)) == 0

    assert page.stat().st_mode & 0o077 == 0
