import tomllib
from pathlib import Path

from appliance.settings import describe_settings, read_settings
from appliance.settings_file import settings_example

EXAMPLE = Path(__file__).parents[2] / "packaging" / "settings.example.toml"


def test_the_packaged_example_is_what_init_writes():
    assert EXAMPLE.read_text("utf-8") == settings_example()


def test_the_example_as_it_stands_changes_nothing(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text(settings_example(), "utf-8")

    assert read_settings(file, {}) == read_settings(tmp_path / "absent.toml", {})


def test_the_example_with_every_line_switched_on_says_the_defaults(tmp_path):
    named = {name.split(".")[1] for name, *_ in describe_settings()}
    lines = [
        line[1:] if line.startswith("#") and line[1:].split(" =")[0] in named else line
        for line in settings_example().splitlines()
    ]
    file = tmp_path / "settings.toml"
    file.write_text("\n".join(lines), "utf-8")

    document = tomllib.loads(file.read_text("utf-8"))
    assert sum(len(section) for section in document.values()) == len(describe_settings())
    assert read_settings(file, {}) == read_settings(tmp_path / "absent.toml", {})
