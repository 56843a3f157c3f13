import json

from web.main import main

CHECK = {"name", "status", "finding", "remedy"}


def test_without_a_box_it_is_one_sentence(program, tmp_path):
    assert "run venuebox init" in program.complaint("doctor")
    assert not program.data.exists()

    program.data.mkdir()
    assert "run venuebox init" in program.complaint("doctor")


def test_json_is_what_the_readme_says(box):
    box("doctor", "--json")

    told = json.loads(box.out)
    assert set(told) == {"status", "checks", "fixed"}
    assert all(set(check) == CHECK for check in told["checks"])
    assert {check["status"] for check in told["checks"]} <= {"ok", "warn", "fail"}
    off = next(check for check in told["checks"] if check["name"] == "box")
    assert "\u2066venuebox serve\u2069" in off["remedy"].pop("ar")
    assert off["remedy"] == {
        "fr": "Démarrez-la : venuebox serve.", "en": "Start it: venuebox serve."
    }  # fmt: skip


def test_it_exits_with_1_when_something_fails_and_mends_what_it_may(box):
    (box.data / "settings.toml").chmod(0o644)

    assert box("doctor") == 1
    assert "FAIL  permissions" in box.out
    assert "→ Run venuebox doctor --fix." in box.out

    box("doctor", "--fix")
    assert f"fixed  {box.data / 'settings.toml'}" in box.out
    assert "ok    permissions" in box.out


def test_settings_that_stop_the_box_do_not_stop_the_doctor(box):
    (box.data / "settings.toml").write_text("[server]\nport = 'x'\n")

    assert box("doctor") == 1
    assert "server.port" in box.out


def test_it_speaks_french_where_the_machine_does(box, capsys):
    main(["doctor", "--data", str(box.data)], {"LANG": "fr_MA.UTF-8"})

    assert "La box n'est pas en marche." in capsys.readouterr().out
