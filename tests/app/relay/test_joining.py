"""Parsing the line that a relay's operator sends to a box's owner."""

import pytest

from appliance.core.errors import OperatorError
from appliance.relay import Relay, relay_file

PRINT = "SHA256:" + "aB3+/" * 8 + "xyz"
LINE = f"venuebox-relay@relay.example.com:443 20001 {PRINT} atlas.example.com"
RELAY = Relay("venuebox-relay", "relay.example.com", 443, 20001, PRINT, "atlas.example.com")


@pytest.mark.parametrize(
    "typed",
    [LINE, f"  {LINE}\n", LINE.replace(" ", "\n  "), LINE.replace(" ", "\N{NO-BREAK SPACE}")],
)
def test_the_relay_invitation_is_parsed_however_it_was_pasted(typed):
    assert Relay.parse(typed) == RELAY


def test_an_ipv6_address_of_a_relay_is_written_in_brackets():
    assert Relay.parse(LINE.replace("relay.example.com", "[2001:db8::1]")).host == "2001:db8::1"


@pytest.mark.parametrize(
    "typed",
    [
        "", "ssh-ed25519 AAAA venuebox", LINE[:-20], LINE[5:].replace("@", ""), f"{LINE} more",
        LINE.replace(":443", ":0"), LINE.replace(":443", ":65536"), LINE.replace("20001", "99999"),
        LINE.replace("SHA256", "MD5"), LINE.replace("atlas.", "at\x1blas."),
        LINE.replace("atlas", "a" * 64), LINE.replace("atlas.example.com", "localhost"),
        LINE.replace("20001", "\N{ARABIC-INDIC DIGIT TWO}0001"),
    ],
)  # fmt: skip
def test_any_other_text_is_refused_as_a_relay_invitation(typed):
    with pytest.raises(OperatorError):
        Relay.parse(typed)


def test_the_relay_file_is_private_and_a_damaged_one_is_reported(tmp_path):
    assert Relay.load(tmp_path) is None
    relay_file(tmp_path).parent.mkdir()
    RELAY.save(tmp_path)
    assert Relay.load(tmp_path) == RELAY
    assert relay_file(tmp_path).stat().st_mode & 0o077 == 0

    relay_file(tmp_path).write_bytes(relay_file(tmp_path).read_bytes()[:-9])
    with pytest.raises(OperatorError):
        Relay.load(tmp_path)
