"""Commands that create keys, terminals, links and signing keys, and that reset sign-ins."""

import re

import pytest

from appliance.api_keys import READ_ONLY_SCOPES, SCOPES
from appliance.core.tokens import Keyring
from appliance.door.terminals import list_terminals, pair_by_code
from appliance.staff.two_factor import (
    confirm_two_factor,
    list_two_factor,
    offer_two_factor,
    totp_code,
)


def create(box, what, *more, environment="live"):
    return box.json(what, "create", "--environment", environment, "--name", "N", *more)


@pytest.mark.parametrize("environment", ["live", "test"])
def test_a_new_key_has_the_prefix_of_its_environment_and_every_scope(box, environment):
    created = create(box, "key", environment=environment)

    assert set(created) == {"id", "name", "environment", "key", "scopes"}
    assert created["environment"] == environment
    assert re.fullmatch(rf"svc_{environment}_[0-9a-f]{{48}}", created["key"])
    assert created["scopes"] == list(SCOPES)


def test_creating_a_live_key_without_a_public_address_prints_the_address_for_guests(box):
    (box.data / "address").write_text("http://192.168.1.20:8080")

    def told(environment):
        assert box("key", "create", "--environment", environment, "--name", "N") == 0
        return "http://192.168.1.20:8080" in box.out

    assert (told("live"), told("test")) == (True, False)
    (box.data / "settings.toml").write_text('[server]\napp_url = "https://riad.example"\n')
    assert not told("live")


def test_a_key_can_be_created_with_chosen_scopes(box):
    chosen = create(box, "key", "--scope", "webhooks:manage", "--scope", "venue:read")

    assert chosen["scopes"] == ["venue:read", "webhooks:manage"]
    assert create(box, "key", "--read-only")["scopes"] == list(READ_ONLY_SCOPES)


def test_no_file_contains_a_secret_in_plain_text(box):
    key = create(box, "key")["key"]
    link = box.json("staff", "create", "--name", "Yasmine", "--role", "door")["signInUrl"]

    for secret in (key.encode(), link.partition("#")[2].encode()):
        assert not any(secret in p.read_bytes() for p in box.data.rglob("*") if p.is_file())


def test_the_key_list_shows_both_environments_and_no_secrets(box):
    live, test = create(box, "key"), create(box, "key", environment="test")

    listed = box.json_lines("key", "list")

    assert [(each["id"], each["environment"]) for each in listed] == [
        (live["id"], "live"), (test["id"], "test"),
    ]  # fmt: skip
    assert live["key"] not in box.out
    assert box.json_lines("key", "list", "--environment", "test") == listed[1:]
    shown = (listed[0]["prefix"], listed[0]["lastFour"])
    assert shown == (live["key"][:13], live["key"][-4:])


def test_a_revoked_key_stays_in_the_list(box):
    created = create(box, "key", environment="test")

    assert box("key", "revoke", created["id"]) == 0
    [listed] = box.json_lines("key", "list")
    assert listed["revokedAt"] is not None

    assert box("key", "revoke", created["id"]) == 0
    assert box.json_lines("key", "list") == [listed]


@pytest.mark.parametrize(("environment", "prefix"), [("live", ""), ("test", "/test")])
def test_a_pairing_link_has_its_secret_in_the_fragment(box, environment, prefix):
    offered = box.json("terminal", "pair", "--environment", environment, "--name", "Entrée")

    assert re.fullmatch(r"[0-9]{8}", offered["code"])
    link = rf"http://127\.0\.0\.1:8080{prefix}/door#pair=[A-Za-z0-9_-]{{43}}"
    assert re.fullmatch(link, offered["url"])
    assert offered["addressIsGuess"]  # the box is not running


@pytest.mark.parametrize(
    ("words", "role"),
    [
        (("create",), "override"),
        (("create", "--role", "scan"), "scan"),
        (("pair", "--role", "search"), "search"),
    ],
)
def test_a_terminal_gets_the_role_from_the_command_line(box, words, role):
    made = box.json("terminal", *words, "--environment", "live", "--name", "Porte")
    with box.transaction() as tx:
        assert words[0] == "create" or pair_by_code(tx, made["code"]) is not None
        [listed] = list_terminals(tx)
    assert (listed.name, listed.role, listed.last_seen_at) == ("Porte", role, None)


@pytest.mark.parametrize("app_url", ["", "https://box.example"])
def test_links_for_staff_use_the_https_address_of_the_box_on_the_lan(box, app_url):
    (box.data / "address").write_text("http://192.168.1.20:8080")
    (box.data / "settings.toml").write_text(f'[server]\napp_url = "{app_url}"\n')

    person = box.json("staff", "create", "--name", "Yasmine", "--role", "owner")
    phone = box.json("terminal", "pair", "--environment", "test", "--name", "Entrée")

    assert person["signInUrl"].startswith("https://192.168.1.20:8443/portal/welcome#")
    assert phone["url"].startswith("https://192.168.1.20:8443/test/door#pair=")
    assert box("staff", "create", "--name", "Karim", "--role", "host") == 0
    assert ("https://box.example/portal/welcome#" in box.out) == bool(app_url)


def test_a_password_reset_prints_a_new_link_and_turns_off_two_factor(box):
    created = box.json("staff", "create", "--name", "Yasmine", "--role", "owner")
    keyring = Keyring(bytes(32), "live")
    with box.transaction() as tx:
        secret = offer_two_factor(tx, keyring, created["id"])
        confirm_two_factor(tx, keyring, created["id"], totp_code(secret, tx.now // 30_000))
        assert created["id"] in list_two_factor(tx)

    for _ in range(2):
        again = box.json("staff", "reset", "yasmine")
        assert again["signInUrl"] != created["signInUrl"]
        with box.transaction() as tx:
            assert not list_two_factor(tx)
