import re
from dataclasses import replace

import pytest

from appliance.clock import parse_instant
from appliance.model.api_key import READ_ONLY_SCOPES, SCOPES
from appliance.store.keys import list_keys


def create(box, *more, environment="live"):
    return box.json("key", "create", "--environment", environment, "--name", "Partner", *more)


@pytest.mark.parametrize("environment", ["live", "test"])
def test_a_key_has_the_form_of_its_environment_and_every_scope(box, environment):
    created = create(box, environment=environment)

    assert set(created) == {"id", "key", "scopes"}
    assert re.fullmatch(rf"svc_{environment}_[0-9a-f]{{48}}", created["key"])
    assert created["scopes"] == list(SCOPES)


def test_scopes_may_be_chosen(box):
    created = create(box, "--scope", "webhooks:manage", "--scope", "venue:read")

    assert created["scopes"] == ["venue:read", "webhooks:manage"]


def test_a_read_only_key_has_the_reading_scopes(box):
    assert create(box, "--read-only")["scopes"] == list(READ_ONLY_SCOPES)


@pytest.mark.proves("S1")
def test_the_key_itself_is_in_no_file(box):
    secret = create(box)["key"].encode()

    assert not any(secret in path.read_bytes() for path in box.data.rglob("*") if path.is_file())


def test_the_list_shows_what_recognises_a_key_and_never_the_key(box):
    live, test = create(box), create(box, environment="test")

    listed = box.json_lines("key", "list")

    assert [key["id"] for key in listed] == [live["id"], test["id"]]
    assert [key["environment"] for key in listed] == ["live", "test"]
    assert listed[0]["lastFour"] == live["key"][-4:]
    assert live["key"].startswith(listed[0]["prefix"])
    assert live["key"] not in box.out
    assert listed[0]["lastUsedAt"] is None
    assert box.json_lines("key", "list", "--environment", "test") == listed[1:]


def test_a_key_that_is_still_to_be_revoked_is_listed_as_working_until_then(box, monkeypatch):
    created = create(box)
    at = parse_instant("2100-01-01T00:00:00.000Z")
    monkeypatch.setattr(
        "appliance.commands.key.list_keys",
        lambda reader: [
            replace(key, revoked_at=at, changes_over=True) for key in list_keys(reader)
        ],
    )

    assert box("key", "list") == 0

    assert created["id"] in box.out
    assert "works until 2100-01-01" in box.out
    assert "revoked" not in box.out


def test_a_revoked_key_stays_in_the_list(box):
    created = create(box, environment="test")

    assert box("key", "revoke", created["id"]) == 0
    [listed] = box.json_lines("key", "list")
    assert listed["revokedAt"] is not None

    assert box("key", "revoke", created["id"]) == 0
    assert box.json_lines("key", "list") == [listed]


def test_revoking_what_is_not_there_is_one_sentence(box):
    assert "there is no key" in box.complaint("key", "revoke", "nope")


def test_a_successor_of_nothing_is_refused_and_no_key_is_left(box):
    sentence = box.complaint(
        "key", "create", "--environment", "live", "--name", "N", "--successor-of", "nope"
    )

    assert "there is no key nope" in sentence
    assert box.json_lines("key", "list") == []


@pytest.mark.parametrize(
    "argv",
    [
        ("--environment", "live"),
        ("--environment", "prod", "--name", "N"),
        ("--environment", "live", "--name", " "),
        ("--environment", "live", "--name", "N", "--scope", "everything"),
        ("--environment", "live", "--name", "N", "--read-only", "--scope", "venue:read"),
    ],
)
def test_wrong_usage_is_one_sentence_and_status_2(box, argv):
    box.complaint("key", "create", *argv, status=2)
