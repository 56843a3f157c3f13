"""What the console hands out: keys, terminals, links, second steps, signing keys."""

import re

import pytest

from appliance.api_keys import READ_ONLY_SCOPES, SCOPES
from appliance.core.tokens import Keyring
from appliance.door.guest_pass import list_signing_keys
from appliance.door.terminals import (
    pair_by_code,
)
from appliance.staff.two_factor import confirm_two_factor, offer_two_factor, totp_code


def create(box, what, *more, environment="live"):
    return box.json(what, "create", "--environment", environment, "--name", "N", *more)


@pytest.mark.parametrize("environment", ["live", "test"])
def test_a_key_has_the_form_of_its_environment_and_every_scope(box, environment):
    created = create(box, "key", environment=environment)

    assert set(created) == {"id", "name", "environment", "key", "scopes"}
    assert created["environment"] == environment
    assert re.fullmatch(rf"svc_{environment}_[0-9a-f]{{48}}", created["key"])
    assert created["scopes"] == list(SCOPES)


def test_a_live_key_without_a_public_address_comes_with_the_address_that_guests_get(box):
    (box.data / "address").write_text("http://192.168.1.20:8080")

    def told(environment):
        assert box("key", "create", "--environment", environment, "--name", "N") == 0
        return "http://192.168.1.20:8080" in box.out

    assert (told("live"), told("test")) == (True, False)
    (box.data / "settings.toml").write_text('[server]\napp_url = "https://riad.example"\n')
    assert not told("live")


def test_scopes_may_be_chosen(box):
    chosen = create(box, "key", "--scope", "webhooks:manage", "--scope", "venue:read")

    assert chosen["scopes"] == ["venue:read", "webhooks:manage"]
    assert create(box, "key", "--read-only")["scopes"] == list(READ_ONLY_SCOPES)


def test_no_secret_is_in_a_file_in_clear(box):
    key = create(box, "key")["key"]
    link = box.json("staff", "create", "--name", "Yasmine", "--role", "door")["signInUrl"]

    for secret in (key.encode(), link.partition("#")[2].encode()):
        assert not any(secret in p.read_bytes() for p in box.data.rglob("*") if p.is_file())


@pytest.mark.parametrize(("what", "secret"), [("key", "key"), ("terminal", "token")])
def test_the_list_shows_both_environments_and_no_secret(box, what, secret):
    live, test = create(box, what), create(box, what, environment="test")

    listed = box.json_lines(what, "list")

    assert [(each["id"], each["environment"]) for each in listed] == [
        (live["id"], "live"), (test["id"], "test"),
    ]  # fmt: skip
    assert live[secret] not in box.out
    assert box.json_lines(what, "list", "--environment", "test") == listed[1:]
    if what == "key":
        shown = (listed[0]["prefix"], listed[0]["lastFour"])
        assert shown == (live["key"][:13], live["key"][-4:])


@pytest.mark.parametrize("what", ["key", "terminal"])
def test_what_is_revoked_stays_in_the_list(box, what):
    created = create(box, what, environment="test")

    assert box(what, "revoke", created["id"]) == 0
    [listed] = box.json_lines(what, "list")
    assert listed["revokedAt"] is not None

    assert box(what, "revoke", created["id"]) == 0
    assert box.json_lines(what, "list") == [listed]


@pytest.mark.parametrize(("environment", "prefix"), [("live", ""), ("test", "/test")])
def test_a_pairing_link_carries_a_secret_of_its_own_behind_the_hash(box, environment, prefix):
    offered = box.json("terminal", "pair", "--environment", environment, "--name", "Entrée")

    assert re.fullmatch(r"[0-9]{8}", offered["code"])
    link = rf"http://127\.0\.0\.1:8080{prefix}/door#pair=[A-Za-z0-9_-]{{43}}"
    assert re.fullmatch(link, offered["url"])


@pytest.mark.parametrize(
    ("words", "role"),
    [
        (("create",), "override"),
        (("create", "--role", "scan"), "scan"),
        (("pair", "--role", "search"), "search"),
    ],
)
def test_a_terminal_has_the_role_it_was_given(box, words, role):
    made = box.json("terminal", *words, "--environment", "live", "--name", "Porte")
    if words[0] == "pair":
        with box.transaction() as tx:
            assert pair_by_code(tx, made["code"]) is not None

    [listed] = box.json_lines("terminal", "list")
    assert (listed["name"], listed["role"], listed["lastSeenAt"]) == ("Porte", role, None)


@pytest.mark.parametrize("app_url", ["", "https://box.example"])
def test_links_for_the_venue_lead_to_its_own_https_whatever_guests_are_given(box, app_url):
    (box.data / "address").write_text("http://192.168.1.20:8080")
    (box.data / "settings.toml").write_text(f'[server]\napp_url = "{app_url}"\n')

    person = box.json("staff", "create", "--name", "Yasmine", "--role", "owner")
    phone = box.json("terminal", "pair", "--environment", "test", "--name", "Entrée")

    assert person["signInUrl"].startswith("https://192.168.1.20:8443/portal/welcome#")
    assert phone["url"].startswith("https://192.168.1.20:8443/test/door#pair=")
    assert box("staff", "create", "--name", "Karim", "--role", "host") == 0
    assert ("https://box.example/portal/welcome#" in box.out) == bool(app_url)


def test_a_second_step_is_removed_at_the_box_itself(box):
    created = box.json("staff", "create", "--name", "Yasmine", "--role", "owner")
    keyring = Keyring(bytes(32), "live")
    with box.transaction() as tx:
        secret = offer_two_factor(tx, keyring, created["id"])
        confirm_two_factor(tx, keyring, created["id"], totp_code(secret, tx.now // 30_000))
    [person] = box.json_lines("staff", "list")
    assert person["hasSecondStep"] is True

    for _ in range(2):
        assert box("staff", "remove-second-step", "yasmine") == 0
        [person] = box.json_lines("staff", "list")
        assert person["hasSecondStep"] is False


@pytest.mark.parametrize(("flags", "leaked"), [((), False), (("--leaked",), True)])
def test_a_new_signing_key_signs_in_the_environment_that_was_named_alone(box, flags, leaked):
    assert box("signing-key", "rotate", "--environment", "live", *flags) == 0

    assert signing_keys(box, "live") == [(2, True, False), (1, False, leaked)]
    assert signing_keys(box, "test") == [(1, True, False)]


def signing_keys(box, environment):
    with box.transaction(environment) as tx:
        ages = list_signing_keys(tx)
        return [(key.kid, key.retired_at is None, key.leaked_at is not None) for key in ages]
