"""`venuebox endpoint`: the owner's hand on partners' receivers."""

import re

import pytest

from appliance.actions.deactivate_endpoint import deactivate_endpoint
from appliance.actions.register_endpoint import register_endpoint
from appliance.data_directory import DataDirectory
from appliance.tokens import Keyring
from tests.appliance.commands.test_commands import transaction
from tests.faults.webhooks.test_certificates import Certificate

PUBLIC = "https://93.184.216.34/hook"


def an_endpoint(box, environment="live", url=PUBLIC, *, active=True):
    """The id of a new endpoint."""
    keyring = Keyring(DataDirectory(box.data).master_key(), environment)
    with transaction(box, environment) as tx:
        endpoint, _ = register_endpoint(tx, keyring, url, ("webhook.test",))
        if not active:
            deactivate_endpoint(tx, endpoint.id)
    return endpoint.id


def test_the_list_shows_how_each_is_doing_and_no_secret(box):
    live, test = an_endpoint(box), an_endpoint(box, "test", active=False)

    first, second = box.json_lines("endpoint", "list")

    assert (first["id"], first["environment"], first["active"]) == (live, "live", True)
    assert (second["id"], second["environment"], second["active"]) == (test, "test", False)
    assert first["lastOutcome"] is first["ca"] is first["pin"] is None
    assert "whsec_" not in box.out
    assert [e["id"] for e in box.json_lines("endpoint", "list", "--environment", "test")] == [test]
    assert box("endpoint", "list") == 0
    assert box.out.splitlines()[0].startswith(f"{live}  live  active  never sent to")


def test_a_rolled_secret_is_shown_once_and_says_how_long_the_old_one_signs(box):
    endpoint_id = an_endpoint(box)

    rolled = box.json("endpoint", "roll", endpoint_id)

    assert re.fullmatch(r"whsec_[A-Za-z0-9_-]{43}", rolled["secret"])
    [row] = box.json_lines("endpoint", "list")
    assert row["oldSecretSignsUntil"] == rolled["oldSecretSignsUntil"] is not None
    secret = rolled["secret"].encode()
    assert not any(secret in path.read_bytes() for path in box.data.rglob("*") if path.is_file())


def test_the_old_secret_is_revoked_at_once(box):
    endpoint_id = an_endpoint(box)
    box.json("endpoint", "roll", endpoint_id)

    assert box.json("endpoint", "revoke-old-secret", endpoint_id)["oldSecretSignsUntil"] is None


def test_an_endpoint_is_switched_off_and_on(box):
    endpoint_id = an_endpoint(box)

    assert box.json("endpoint", "deactivate", endpoint_id)["active"] is False
    assert box.json("endpoint", "activate", endpoint_id)["active"] is True
    assert box("endpoint", "activate", endpoint_id) == 0
    assert box.out == f"endpoint {endpoint_id} is active\n"


def test_the_sixth_is_not_switched_on(box):
    for _ in range(5):
        an_endpoint(box, url=PUBLIC)
    with transaction(box) as tx:
        tx.insert("endpoint", {"id": "e-6", "url": PUBLIC, "events": "[]", "active": 0,
                               "created_at": 0, "secret": b""})  # fmt: skip

    assert "5 webhook endpoints are already active" in box.complaint("endpoint", "activate", "e-6")


@pytest.mark.parametrize("url", ["https://10.0.0.1/", "http://93.184.216.34/"])
def test_what_the_settings_no_longer_allow_is_not_switched_on(box, url):
    endpoint_id = an_endpoint(box, url=url, active=False)

    assert "Webhook URL refused" in box.complaint("endpoint", "activate", endpoint_id)

    assert box.json("endpoint", "list")["active"] is False


def test_an_authority_a_pin_or_the_machines_own_trust_is_set(box, tmp_path):
    endpoint_id, certificate = an_endpoint(box), Certificate("Own authority", authority=True)
    (tmp_path / "ca.pem").write_text(certificate.pem)

    by_ca = box.json("endpoint", "trust", endpoint_id, "--ca", str(tmp_path / "ca.pem"))
    by_pin = box.json("endpoint", "trust", endpoint_id, "--pin", certificate.digest.hex(":"))
    by_system = box.json("endpoint", "trust", endpoint_id, "--system")

    assert (by_ca["ca"], by_ca["pin"]) == (certificate.pem, None)
    assert (by_pin["ca"], by_pin["pin"]) == (None, certificate.digest.hex())
    assert (by_system["ca"], by_system["pin"]) == (None, None)


def test_what_is_no_certificate_is_refused_and_nothing_is_changed(box, tmp_path):
    endpoint_id = an_endpoint(box)
    (tmp_path / "ca.pem").write_text("nothing")

    trust = ("endpoint", "trust", endpoint_id)
    assert "expected in PEM" in box.complaint(*trust, "--ca", str(tmp_path / "ca.pem"))
    assert "cannot be read" in box.complaint(*trust, "--ca", str(tmp_path / "none.pem"))
    assert "64 hexadecimal" in box.complaint(*trust, "--pin", "12")
    box.complaint(*trust, status=2)
    box.complaint(*trust, "--system", "--pin", "0" * 64, status=2)

    row = box.json("endpoint", "list")
    assert row["ca"] is row["pin"] is None


@pytest.mark.parametrize(
    "words", [("roll",), ("revoke-old-secret",), ("activate",), ("deactivate",),
              ("trust", "--system")]
)  # fmt: skip
def test_an_unknown_endpoint_is_named_and_the_list_pointed_to(box, words):
    complaint = box.complaint("endpoint", words[0], "e-0", *words[1:])

    assert "no endpoint e-0: venuebox endpoint list" in complaint
