"""Terminals from the console: their roles, the list, and shutting one out."""

import pytest

from appliance.actions.pair_terminal import pair_by_code
from appliance.clock import SystemClock, newest_zone_database
from appliance.store.session import session
from appliance.tokens import Tokens


def create(box, *more, environment="live"):
    return box.json("terminal", "create", "--environment", environment, "--name", "Porte", *more)


@pytest.mark.parametrize(("options", "role"), [((), "override"), (("--role", "scan"), "scan")])
def test_a_terminal_has_the_role_it_is_created_with(box, options, role):
    created = create(box, *options)

    [listed] = box.json_lines("terminal", "list")
    assert (listed["id"], listed["role"]) == (created["id"], role)


def test_a_paired_phone_has_the_role_it_was_offered(box):
    offer = ("terminal", "pair", "--environment", "live", "--name", "Porte", "--role", "search")
    offered = box.json(*offer)

    path = box.data / "live.db"
    with session(path, SystemClock(), Tokens(), newest_zone_database()) as tx:
        assert pair_by_code(tx, offered["code"]) is not None

    [listed] = box.json_lines("terminal", "list")
    assert listed["role"] == "search"


def test_terminals_are_listed_without_their_tokens(box):
    live, test = create(box), create(box, environment="test")

    listed = box.json_lines("terminal", "list")

    assert [terminal["id"] for terminal in listed] == [live["id"], test["id"]]
    assert [terminal["environment"] for terminal in listed] == ["live", "test"]
    assert (listed[0]["name"], listed[0]["role"]) == ("Porte", "override")
    assert listed[0]["lastSeenAt"] is None
    assert live["token"] not in box.out
    assert box.json_lines("terminal", "list", "--environment", "test") == listed[1:]


def test_a_revoked_terminal_stays_in_the_list(box):
    created = create(box, environment="test")

    assert box("terminal", "revoke", created["id"]) == 0
    [listed] = box.json_lines("terminal", "list")
    assert listed["revokedAt"] is not None

    assert box("terminal", "revoke", created["id"]) == 0
    assert box.json_lines("terminal", "list") == [listed]
    assert box("terminal", "list") == 0
    assert "revoked" in box.out


def test_revoking_what_is_not_there_is_one_sentence(box):
    assert "there is no terminal" in box.complaint("terminal", "revoke", "nope")


def test_a_role_that_is_none_is_wrong_usage(box):
    argv = ("--environment", "live", "--name", "N", "--role", "boss")

    box.complaint("terminal", "create", *argv, status=2)
