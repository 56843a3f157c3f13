"""Settings: file, environment, one sentence for each mistake (docs/reference/settings.md)."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import Trouble
from appliance.settings import Settings, describe_settings, read_settings

ABSENT = Path("there-is-no-such-file.toml")


def read(tmp_path: Path, text: str, **environ: str) -> Settings:
    file = tmp_path / "settings.toml"
    file.write_text(text, "utf-8")
    return read_settings(file, environ)


def test_without_a_file_every_setting_has_its_default():
    assert read_settings(ABSENT, {}) == Settings()


def test_the_defaults_are_those_of_the_contract_and_of_operations():
    settings = Settings()

    assert settings.api.rate_limit_per_minute == 60
    assert settings.door.early_minutes == 120
    assert (settings.webhooks.allow_networks, settings.webhooks.allow_http) == ((), False)
    assert settings.server.port == 8080


def test_the_file_is_read(tmp_path: Path):
    settings = read(
        tmp_path,
        """
        [server]
        app_url = "https://box.example"
        trusted_proxies = ["10.0.0.1"]
        [webhooks]
        allow_http = true
        [door]
        early_minutes = 30
        """,
    )

    assert settings.server.app_url == "https://box.example"
    assert settings.server.trusted_proxies == ("10.0.0.1",)
    assert settings.webhooks.allow_http is True
    assert settings.door.early_minutes == 30
    assert settings.api == Settings().api


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
def test_a_variable_goes_before_the_file(tmp_path, variable, text, section, name, value):
    file = '[server]\nport = 1\napp_url = "https://other.example"\n[webhooks]\nallow_http = false\n'

    assert getattr(getattr(read(tmp_path, file, **{variable: text}), section), name) == value


def test_every_setting_can_be_given_as_a_variable():
    for name, variable, default, _ in describe_settings():
        texts = {bool: "true", int: "17", str: "none", tuple: "10.0.0.1"}
        special = {"server.app_url": "https://x.example", "server.metrics_token": "t" * 16,
                   "backup.directory": "/mnt/usb"}  # fmt: skip
        text = special.get(name, texts[type(default)])
        text = "false" if default is True else text
        section, _, setting = name.partition(".")
        environ = {"VENUEBOX_MAIL_SENDER": "table@riad.example", variable: text}
        found = getattr(getattr(read_settings(ABSENT, environ), section), setting)
        assert found != default, name
        assert type(found) is type(default), name


def test_every_setting_is_described_once_with_its_default_and_its_meaning():
    described = {name: default for name, _, default, _ in describe_settings()}

    assert described == {
        f"{section.name}.{item.name}": item.default
        for section in dataclasses.fields(Settings)
        if section.name != "readers"
        for item in dataclasses.fields(section.default_factory)
    }
    assert all(meaning for *_, meaning in describe_settings())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[server]\nport = 65536", ["server.port", "65536", "0 to 65535"]),
        ("[server]\nport = -1", ["server.port", "-1", "0 to 65535"]),
        ("[server]\nport = '8080'", ["server.port", "'8080'", "a whole number"]),
        ("[server]\nport = true", ["server.port", "True", "a whole number"]),
        ("[server]\nport = 80.5", ["server.port", "80.5", "a whole number"]),
        ("[server]\nhost = 1", ["server.host", "1", "text"]),
        ("[server]\napp_url = 'box.example'", ["server.app_url", "'box.example'", "https://"]),
        ("[server]\napp_url = 'https://box.example/'", ["server.app_url", "without a path"]),
        ("[server]\napp_url = 'https://a:b@box.example'", ["server.app_url", "https://"]),
        ("[server]\napp_url = 'ftp://box.example'", ["server.app_url", "https://"]),
        ("[server]\nmetrics_token = 'short'", ["server.metrics_token", "16 characters"]),
        ("[server]\ntrusted_proxies = ['proxy']", ["server.trusted_proxies", "proxy", "10.0.0.0"]),
        ("[server]\ntrusted_proxies = '10.0.0.1'", ["server.trusted_proxies", "a list of texts"]),
        ("[server]\ntrusted_proxies = [1]", ["server.trusted_proxies", "a list of texts"]),
        ("[api]\nrate_limit_per_minute = 0", ["api.rate_limit_per_minute", "0", "1 or more"]),
        ("[api]\nunauthenticated_per_minute = 0", ["api.unauthenticated_per_minute", "1 or more"]),
        ("[webhooks]\nallow_http = 1", ["webhooks.allow_http", "1", "true or false"]),
        ("[mail]\nport = 0", ["mail.port", "0", "1 to 65535"]),
        ("[mail]\nsecurity = 'ssl'", ["mail.security", "'ssl'", "starttls, tls or none"]),
        ("[door]\nearly_minutes = 1441", ["door.early_minutes", "1441", "0 to 1440"]),
        ("[server]\nprt = 1", ["server.prt", "port"]),
        ("[serverr]\nport = 1", ["[serverr]", "server"]),
        ("server = 1", ["server", "[server]"]),
        ("[server", ["settings.toml"]),
    ],
)
def test_a_mistake_is_one_sentence_with_the_setting_the_value_and_what_is_allowed(
    tmp_path: Path, text: str, words: list[str]
):
    with pytest.raises(Trouble) as trouble:
        read(tmp_path, text)

    sentence = str(trouble.value)
    assert all(word in sentence for word in words), sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("variable", "text", "word"),
    [
        ("VENUEBOX_SERVER_PORT", "http", "server.port is 'http'"),
        ("VENUEBOX_SERVER_PORT", "", "server.port is ''"),
        ("VENUEBOX_SERVER_PORT", "--5", "server.port is '--5'"),
        ("VENUEBOX_SERVER_PORT", "9" * 5000, "server.port is '999"),
        ("VENUEBOX_WEBHOOKS_ALLOW_HTTP", "yes", "webhooks.allow_http is 'yes'"),
        ("VENUEBOX_SERVER_PROT", "1", "VENUEBOX_SERVER_PROT"),
        ("VENUEBOX_WEBHOOK_ALLOW_HTTP", "true", "VENUEBOX_WEBHOOK_ALLOW_HTTP"),
        ("VENUEBOX_MAILS_HOST", "m.example", "VENUEBOX_MAILS_HOST"),
    ],
)
def test_a_bad_variable_is_named(variable: str, text: str, word: str):
    with pytest.raises(Trouble, match=word):
        read_settings(ABSENT, {variable: text})


def test_variables_of_others_and_the_one_of_the_data_directory_are_let_be():
    environ = {"VENUEBOX_DATA": "box", "SERVER_PORT": "x", "VENUEBOXER": "y"}
    of_a_cluster = {"VENUEBOX_SERVICE_HOST": "10.0.0.9", "VENUEBOX_PORT": "tcp://10.0.0.9:80"}
    assert read_settings(ABSENT, of_a_cluster) == Settings()

    assert read_settings(ABSENT, environ) == Settings()


@given(st.sampled_from([row[1] for row in describe_settings()]), st.text())
def test_whatever_a_variable_says_the_answer_is_settings_or_a_sentence(variable: str, text: str):
    try:
        outcome = read_settings(ABSENT, {variable: text})
    except Trouble as trouble:
        outcome = trouble

    assert isinstance(outcome, Settings) or variable.split("_")[1].lower() in str(outcome)


def test_a_mail_server_without_a_sender_is_refused_in_one_sentence():
    with pytest.raises(Trouble) as trouble:
        read_settings(ABSENT, {"VENUEBOX_MAIL_HOST": "mail.example"})

    assert str(trouble.value) == (
        "mail.sender is missing: with mail.host set, letters need a From address"
    )
