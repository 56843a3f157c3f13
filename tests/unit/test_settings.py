"""Settings: file, environment variables, and messages (docs/reference/settings.md)."""

import dataclasses
import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.core.errors import OperatorError
from appliance.core.saved_settings import SettingFixed, save_settings, settings_example
from appliance.core.scanner_settings import parse_readers
from appliance.core.settings import (
    Settings,
    describe_settings,
    parse_settings,
    read_settings,
)

ABSENT = Path("there-is-no-such-file.toml")


def read(tmp_path: Path, text: str, **environ: str) -> Settings:
    file = tmp_path / "settings.toml"
    file.write_text(text, "utf-8")
    return read_settings(file, environ)


@pytest.mark.parametrize(
    ("variable", "text", "section", "name", "value"),
    [
        ("VENUEBOX_SERVER_PORT", "9000", "server", "port", 9000),
        ("VENUEBOX_SERVER_APP_URL", "https://box.example", "server", "app_url",
         "https://box.example"),
        ("VENUEBOX_WEBHOOKS_ALLOW_HTTP", "True", "webhooks", "allow_http", True),
        ("VENUEBOX_WEBHOOKS_ALLOW_NETWORKS", " 10.0.0.5:9000, 10.1.0.0/16 ,", "webhooks",
         "allow_networks", ("10.0.0.5:9000", "10.1.0.0/16")),
        ("VENUEBOX_API_RATE_LIMIT_PER_MINUTE", "5", "api", "rate_limit_per_minute", 5),
        ("VENUEBOX_MAIL_PASSWORD", " spaces are kept ", "mail", "password", " spaces are kept "),
    ],
)  # fmt: skip
def test_an_environment_variable_overrides_the_file(tmp_path, variable, text, section, name, value):
    file = '[server]\nport = 1\napp_url = "https://other.example"\n[webhooks]\nallow_http = false\n'

    assert getattr(getattr(read(tmp_path, file, **{variable: text}), section), name) == value


def test_every_setting_can_be_given_as_an_environment_variable():
    for name, variable, default in describe_settings():
        texts = {bool: "true", int: "17", str: "none", tuple: "10.0.0.1"}
        special = {"server.app_url": "https://x.example", "server.metrics_token": "t" * 16,
                   "backup.directory": "/mnt/usb", "backup.target": "s3://bucket",
                   "acme.directory": "https://x.example/dir",
                   "acme.challenge": "dns-01", "acme.dns_hook": "/opt/hook",
                   "acme.ca_file": "/etc/ca.pem", "server.house_address": "10.1.2.3",
                   "mirror.url": "postgresql://box@db.example/venues",
                   "update.url": "https://x.example/a.release"}  # fmt: skip
        text = special.get(name, texts[type(default)])
        text = "false" if default is True else text
        section, _, setting = name.partition(".")
        needed = {"MAIL_SENDER": "table@riad.example", "ACME_AGREE_TERMS": "true"}
        environ = {f"VENUEBOX_{key}": value for key, value in needed.items()} | {variable: text}
        found = getattr(getattr(read_settings(ABSENT, environ), section), setting)
        assert found != default, name
        assert type(found) is type(default), name


def test_every_setting_is_documented_once_with_its_default():
    described = {name: default for name, _, default in describe_settings()}

    assert described == {
        f"{section.name}.{item.name}": item.default
        for section in dataclasses.fields(Settings)
        if section.name != "readers"
        for item in dataclasses.fields(section.default_factory)
    }


BAD = {
    "server.port": (65536, -1, "8080", True, 80.5),
    "server.host": (1,),
    "server.house_address": ("box.lan", "192.168.1.20/24", "::"),
    "server.names": [["https://box.example"], ["box.example:8443"], ["box example"]],
    "server.app_url": (
        "box.example", "https://box.example/path",
        "https://box.example/", "https://a:b@box.example", "ftp://box.example",
        "https://[::1", "https://[zz]", "http://x:99999", "http://x:0", "http://x:port",
        "https://a\u2100b.example", "https://x.example\n", "https://x.example ",
        " https://x.example", "https://x y.example", "https://x.example\t", "https://x.example?",
        "https://x.example#", "https://@x.example", "https://<x>", "https://x.example\\",
    ),
    "server.metrics_token": ("short",),
    "server.trusted_proxies": (["proxy"], "10.0.0.1", [1]),
    "api.rate_limit_per_minute": (0,),
    "api.unauthenticated_per_minute": (0,),
    "webhooks.allow_http": (1,),
    "mail.port": (0,),
    "mail.security": ("ssl",),
    "backup.directory": (
        "usb", "./usb", "../usb", "~/usb", "/", "//", "/etc", "//etc/x", "/mnt/../etc", "/root/x",
        "/usr/local/backups", "/var", "/var/lib/", "/home",
    ),
    "backup.every_minutes": (-1, 1441),
    "backup.target": (
        "/mnt/usb", "ftp://box@nas/backups", "sftp://nas/backups", "sftp://box@nas", "sftp://box@/x",
        "sftp://box:secret@nas/x", "sftp://box@nas/x?endpoint=https://a", "sftp://box@nas/x#a",
        "sftp://box@nas:0/x", "sftp://box@nas:99999/x", "sftp://box@nas/x\n", "sftp://[zz]/x", "s3://",
        "s3://key:secret@bucket", "s3://bucket?endpoint=nas", "s3://bucket?secret=1", "s3://b?region",
    ),
    "acme.directory": ("http://x.example/dir", "x.example", "https://x.example/dir\n", "https://"),
    "acme.challenge": ("tls", ""),
    "acme.dns_hook": ("hook", "./hook"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(n, value) for n, values in BAD.items() for value in values]
)
def test_an_invalid_value_is_refused_in_one_sentence_that_names_the_setting(tmp_path, name, value):
    section, _, setting = name.partition(".")

    with pytest.raises(OperatorError, match=rf"^{name} is ") as trouble:
        read(tmp_path, f"[{section}]\n{setting} = {json.dumps(value)}")

    assert "\n" not in str(trouble.value)
    assert ":secret@" not in str(trouble.value)


@pytest.mark.parametrize(
    "target",
    ["", "sftp://box@nas.example/backups", "sftp://box@[fd00::1]:2222/a?hostkey=SHA256:abc/",
     "s3://bucket", "s3://bucket/a/b?endpoint=https://s3.example:9000&region=fr-par"],
)  # fmt: skip
def test_a_backup_copy_target_is_an_sftp_folder_or_a_bucket(tmp_path, target):
    text = f"[backup]\ntarget = {json.dumps(target)}"

    assert read(tmp_path, text).backup.target == target


@pytest.mark.parametrize(
    ("text", "named"),
    [("[server]\nprt = 1", "server.prt"), ("[serverr]\nport = 1", "[serverr]"),
     ("server = 1", "server"), ("[server", "settings.toml"),
     ("[server]\n[server]", "section already")],
)  # fmt: skip
def test_an_unknown_setting_is_named(tmp_path, text, named):
    with pytest.raises(OperatorError, match=re.escape(named)):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("variable", "text", "word"),
    [("VENUEBOX_SERVER_PORT", "http", "server.port is 'http'"),
     ("VENUEBOX_SERVER_PORT", "", "server.port is ''"),
     ("VENUEBOX_SERVER_PORT", "--5", "server.port is '--5'"),
     ("VENUEBOX_SERVER_PORT", "9" * 5000, "server.port is '999"),
     ("VENUEBOX_WEBHOOKS_ALLOW_HTTP", "yes", "webhooks.allow_http is 'yes'"),
     ("VENUEBOX_SERVER_PROT", "1", "VENUEBOX_SERVER_PROT"),
     ("VENUEBOX_WEBHOOK_ALLOW_HTTP", "true", "VENUEBOX_WEBHOOK_ALLOW_HTTP"),
     ("VENUEBOX_MAILS_HOST", "m.example", "VENUEBOX_MAILS_HOST")],
)  # fmt: skip
def test_an_invalid_environment_variable_is_named(variable: str, text: str, word: str):
    with pytest.raises(OperatorError, match=word):
        read_settings(ABSENT, {variable: text})


def test_unrelated_variables_and_the_data_directory_variable_are_ignored():
    environ = {"VENUEBOX_DATA": "box", "SERVER_PORT": "x", "VENUEBOXER": "y"}
    of_a_cluster = {"VENUEBOX_SERVICE_HOST": "10.0.0.9", "VENUEBOX_PORT": "tcp://10.0.0.9:80"}

    assert read_settings(ABSENT, environ | of_a_cluster) == Settings()


@settings(max_examples=30)
@given(st.sampled_from([row[1] for row in describe_settings()]), st.text())
def test_any_value_of_a_variable_gives_settings_or_an_error_sentence(variable: str, text: str):
    try:
        outcome = read_settings(ABSENT, {variable: text})
    except OperatorError as trouble:
        outcome = trouble

    assert isinstance(outcome, Settings) or variable.split("_")[1].lower() in str(outcome)


def test_a_mail_server_without_a_sender_is_refused_in_one_sentence():
    with pytest.raises(OperatorError, match=r"^mail\.sender is missing"):
        read_settings(ABSENT, {"VENUEBOX_MAIL_HOST": "mail.example"})


def test_the_example_settings_change_nothing_and_explain_each_setting():
    assert parse_settings(settings_example(), {}) == Settings()
    for name, *_ in describe_settings():
        assert re.search(rf"^# \w.*\n#{name.split('.')[1]} = ", settings_example(), re.MULTILINE)


def test_the_commented_example_settings_are_the_defaults(tmp_path):
    named = {name.split(".")[1] for name, *_ in describe_settings()}
    lines = [
        line[1:] if line.startswith("#") and line[1:].split(" =")[0] in named else line
        for line in settings_example().splitlines()
    ]
    file = tmp_path / "settings.toml"
    file.write_text("\n".join(lines), "utf-8")

    document = tomllib.loads(file.read_text("utf-8"))
    assert sum(len(section) for section in document.values()) == len(describe_settings())
    assert read_settings(file, {}) == Settings()


READERS = '[[readers]]\nterminal = "Front door"\nkind = "tcp"\nport = 4001\n'


def test_settings_from_the_portal_apply_unless_the_file_or_a_variable_sets_them(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('[mail]\nhost = "by.hand"\nsender = "a@b.example"\n', "utf-8")
    (tmp_path / "secrets").mkdir()

    saved = save_settings(file, {"server.app_url": "https://a.example", "mail.port": 465}, {})

    assert (saved.server.app_url, saved.mail.port) == ("https://a.example", 465)
    assert read_settings(file, {}) == saved
    assert read_settings(file, {"VENUEBOX_MAIL_PORT": "25"}).mail.port == 25
    for name, environ in (("mail.host", {}), ("mail.port", {"VENUEBOX_MAIL_PORT": "25"})):
        with pytest.raises(SettingFixed):
            save_settings(file, {name: 1}, environ)
    assert read_settings(file, {}) == saved


@pytest.mark.parametrize(
    "changes",
    [{"mail.port": 0}, {"server.app_url": "nonsense"}, {"mail.host": "no.sender"},
     {"server.names": "a"}],
)  # fmt: skip
def test_an_invalid_setting_is_not_stored(tmp_path, changes):
    (tmp_path / "secrets").mkdir()
    with pytest.raises(OperatorError):
        save_settings(tmp_path / "settings.toml", changes, {})
    assert read_settings(tmp_path / "settings.toml", {}) == Settings()


SERIAL = {"kind": "serial", "device": "/dev/ttyACM0", "terminal": "Porte 1"}
TCP = {"kind": "tcp", "port": 7070, "terminal": "Porte 1"}


def test_the_readers_in_the_file_are_part_of_the_settings(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text(
        r"""
        [[readers]]
        kind = "serial"
        device = "/dev/serial/by-id/usb-scanner"
        terminal = "Porte 1"
        answer = { green = '\xA0\x01\x01\xA2\p\xA0\x01\x00\xA1', red = "\u0007" }
        [[readers]]
        kind = "tcp"
        port = 7070
        terminal = "Porte 2"
        environment = "test"
        """,
        "utf-8",
    )

    serial, tcp = read_settings(file, {}).readers

    assert (serial.baud, serial.environment) == (9600, "live")
    assert serial.answer == {"green": (b"\xa0\x01\x01\xa2", b"\xa0\x01\x00\xa1"), "red": (b"\x07",)}
    assert (tcp.place, tcp.environment) == ("127.0.0.1:7070", "test")


def test_the_reader_in_the_example_settings_is_valid():
    text = settings_example().partition("# [[readers]]")[2]
    lines = [line.removeprefix("# ") for line in text.splitlines()]

    [reader] = parse_readers(tomllib.loads("\n".join(["[[readers]]", *lines]))["readers"])

    assert reader.answer["green"] == (b"\xa0\x01\x01\xa2", b"\xa0\x01\x00\xa1")


def test_readers_of_a_bridge_have_no_terminal_of_their_own():
    [reader] = parse_readers([{"kind": "tcp", "port": 7070}], on_a_bridge=True)

    assert reader.terminal == ""
    with pytest.raises(OperatorError, match=r"unknown setting readers\[1\].terminal"):
        parse_readers([TCP], on_a_bridge=True)


@pytest.mark.parametrize(
    ("readers", "named"),
    [
        ({"kind": "tcp"}, "[[readers]]"),
        ([1], "[[readers]]"),
        ([TCP, SERIAL | {"devise": "x"}], "unknown setting readers[2].devise"),
        ([TCP | {"device": "/dev/x"}], "unknown setting readers[1].device"),
        ([{"kind": "serial", "terminal": "P"}], "readers[1].device is missing"),
        ([{"kind": "tcp", "port": 1}], "readers[1].terminal is missing"),
        ([{"kind": "tcp", "terminal": "P"}], "readers[1].port is missing"),
        ([SERIAL | {"kind": "evdev", "answer": {}}], "readers[1].answer_device is missing"),
        ([TCP, TCP], "two readers use 127.0.0.1:7070"),
        *(
            ([SERIAL | {name: value}], f"readers[1].{name}")
            for name, value in (("kind", "usb"), ("device", "ttyACM0"), ("baud", 9601),
                                ("baud", "9600"), ("repeat_answer", 1), ("terminal", " "),
                                ("environment", "prod"), ("answer", "x"))
        ),
        *(([TCP | {"port": port}], "readers[1].port") for port in (0, True)),
        *(
            ([TCP | {"answer": {"red": red}}], "readers[1].answer.red")
            for red in (7, r"\q", "\\", r"\xA", "x" * 300)
        ),
        ([TCP | {"answer": {"blue": "x"}}], "readers[1].answer.blue"),
    ],
)  # fmt: skip
def test_an_error_in_a_reader_is_one_sentence_that_names_it(readers, named):
    with pytest.raises(OperatorError, match=re.escape(named)) as trouble:
        parse_readers(readers)

    assert "\n" not in str(trouble.value)
