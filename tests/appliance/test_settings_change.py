import pytest

from appliance.errors import Trouble
from appliance.settings import parse_settings
from appliance.settings_file import change_settings, settings_example

READERS = '[[readers]]\nterminal = "Front door"\nkind = "tcp"\nport = 4001\n'


def test_a_setting_that_is_switched_off_is_put_in_force_in_its_place():
    changes = {"mail.host": "smtp.example.com", "mail.sender": "riad@example.com"}

    changed = change_settings(settings_example(), changes)

    assert parse_settings(changed, {}).mail.host == "smtp.example.com"
    assert changed.count("\n") == settings_example().count("\n")
    assert "# mail server; empty: no mail is sent from live\nhost = " in changed


def test_a_setting_in_force_is_replaced_and_all_else_stays():
    text = (
        '# ours\n[server]\nhost = "127.0.0.1" # loopback\n'
        '[mail]\nhost = "old"\nport = 25\nsender = "a@b.example"\n'
    )

    changed = change_settings(text, {"mail.host": "new", "server.app_url": "https://a.example"})

    assert changed == (
        '# ours\n[server]\napp_url = "https://a.example"\nhost = "127.0.0.1" # loopback\n'
        '[mail]\nhost = "new"\nport = 25\nsender = "a@b.example"\n'
    )


def test_a_section_that_is_missing_stands_before_the_readers():
    changed = change_settings(READERS, {"mail.port": 465})

    settings = parse_settings(changed, {})
    assert settings.mail.port == 465
    assert len(settings.readers) == 1


def test_an_empty_file_becomes_the_example_with_the_change():
    changed = change_settings("", {"server.names": ["box.example"]})

    assert parse_settings(changed, {}).server.names == ("box.example",)
    assert "[retention]" in changed


@pytest.mark.parametrize(
    "value", ['"\nport = 1', "a\\b", 'x" # y', "é☃", "[mail]\nport = 2", "\u2028", "\x7f"]
)
def test_no_value_can_say_another_setting(value):
    changed = change_settings(settings_example(), {"mail.user": value})

    assert parse_settings(changed, {}).mail.user == value
    assert parse_settings(changed, {}).mail.port == 587


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("", {"mail.port": 0}),
        ("", {"server.app_url": "nonsense"}),
        ('[server]\nnames = [\n  "a",\n]\n', {"server.names": ["b"]}),
        ('mail = {host = "x"}\n', {"mail.host": "y"}),
        ("[mail\n", {"mail.host": "y"}),
    ],
)
def test_what_would_break_the_file_is_refused(text, changes):
    with pytest.raises(Trouble):
        change_settings(text, changes)
