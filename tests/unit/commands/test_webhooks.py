"""Webhook receivers and deliveries at the console: `endpoint`, `deliveries`, `replay`."""

import re

import pytest

from appliance.clock import parse_instant
from appliance.core.data_directory import DataDirectory
from appliance.core.tokens import Keyring
from appliance.webhooks.endpoints import deactivate_endpoint, register_endpoint
from tests.promises.webhooks.test_certificates import Certificate

PUBLIC = "https://93.184.216.34/hook"


def an_endpoint(box, environment="live", url=PUBLIC, *, active=True):
    """The id of a new endpoint."""
    keyring = Keyring(DataDirectory(box.data).master_key(), environment)
    with box.transaction(environment) as tx:
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


def test_a_rolled_secret_is_shown_once_and_says_how_long_the_old_one_signs(box):
    endpoint_id = an_endpoint(box)

    rolled = box.json("endpoint", "roll", endpoint_id)

    assert re.fullmatch(r"whsec_[A-Za-z0-9_-]{43}", rolled["secret"])
    [row] = box.json_lines("endpoint", "list")
    assert row["oldSecretSignsUntil"] == rolled["oldSecretSignsUntil"] is not None
    secret = rolled["secret"].encode()
    assert not any(secret in path.read_bytes() for path in box.data.rglob("*") if path.is_file())
    revoked = box.json("endpoint", "revoke-old-secret", endpoint_id)
    assert revoked["oldSecretSignsUntil"] is None


def test_an_endpoint_is_switched_off_and_on(box):
    endpoint_id = an_endpoint(box)

    assert box.json("endpoint", "deactivate", endpoint_id)["active"] is False
    assert box.json("endpoint", "activate", endpoint_id)["active"] is True
    assert box.json("endpoint", "activate", endpoint_id)["active"] is True


@pytest.mark.parametrize("url", ["https://10.0.0.1/", "http://93.184.216.34/"])
def test_what_the_settings_no_longer_allow_is_not_switched_on(box, url):
    endpoint_id = an_endpoint(box, url=url, active=False)

    box.complaint("endpoint", "activate", endpoint_id)

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
    box.complaint(*trust, "--ca", str(tmp_path / "ca.pem"))
    box.complaint(*trust, "--ca", str(tmp_path / "none.pem"))
    box.complaint(*trust, "--pin", "12")
    box.complaint(*trust, status=2)
    box.complaint(*trust, "--system", "--pin", "0" * 64, status=2)

    row = box.json("endpoint", "list")
    assert row["ca"] is row["pin"] is None


DAYS = ("2026-11-19T23:59:59Z", "2026-11-20T00:00:00Z", "2026-11-21T23:59:59Z",
        "2026-11-22T00:00:00Z")  # fmt: skip


@pytest.fixture
def queued(box):
    """Four dead deliveries of e-1 on those days, a delivered one of it, a dead one of e-2."""
    with box.transaction() as tx:
        for id_ in ("e-1", "e-2"):
            tx.insert("endpoint", {"id": id_, "url": "https://x.example", "events": "[]",
                                   "active": 1, "created_at": 0, "secret": b""})  # fmt: skip
        rows = [("e-1", "dead", day) for day in DAYS]
        rows += [("e-1", "delivered", DAYS[1]), ("e-2", "dead", DAYS[1])]
        for number, (endpoint_id, state, day) in enumerate(rows, 1):
            at = parse_instant(day)
            seq = tx.insert("event", {"type": "webhook.test", "occurred_at": at})
            tx.insert("delivery", {"id": f"d-{number}", "endpoint_id": endpoint_id, "due_at": at,
                                   "event_seq": seq, "state": state, "attempts": 6,
                                   "finished_at": at})  # fmt: skip
    return box


def pending(box):
    with box.transaction() as tx:
        rows = tx.rows("SELECT id, attempts, replays FROM delivery WHERE state = 'pending'")
        return {id_ for id_, attempts, replays in rows if (attempts, replays) == (0, 1)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--delivery", "d-5"), {"d-5"}),
        (("--endpoint", "e-1"), {"d-1", "d-2", "d-3", "d-4"}),
        (("--endpoint", "e-1", "--dead"), {"d-1", "d-2", "d-3", "d-4"}),
        (("--endpoint", "e-1", "--all"), {"d-1", "d-2", "d-3", "d-4", "d-5"}),
    ],
)
def test_what_is_named_is_due_again_and_nothing_else(queued, words, expected):
    answer = queued.json("replay", "--environment", "live", *words)

    assert answer == {"replayed": len(expected)}
    assert pending(queued) == expected


def test_deliveries_are_told_with_their_attempts_one_on_a_line(box):
    with box.transaction() as tx:
        tx.insert("endpoint", {"id": "e-1", "url": "https://x.example", "events": "[]",
                               "active": 1, "created_at": 0, "secret": b""})  # fmt: skip
        seq = tx.insert("event", {"type": "webhook.test", "occurred_at": 0})
        for id_, state in (("d-1", "pending"), ("d-2", "delivered")):
            delivery = tx.insert("delivery", {"id": id_, "endpoint_id": "e-1", "event_seq": seq,
                                              "state": state, "due_at": 60_000})  # fmt: skip
            for n, (outcome, status) in enumerate([("timeout", None), ("http_500", 500)], 1):
                tx.insert("attempt", {"delivery_seq": delivery, "n": n, "at": n * 1000,
                                      "duration_ms": 7, "phase": "done", "outcome": outcome,
                                      "http_status": status, "charged": 1})  # fmt: skip

    pending, delivered = box.json_lines("deliveries", "--environment", "live")

    assert pending == {
        "id": "d-1",
        "event": seq,
        "type": "webhook.test",
        "endpoint": "e-1",
        "state": "pending",
        "attempts": [
            {"at": "1970-01-01T00:00:01.000Z", "error": "timeout", "durationMs": 7},
            {"at": "1970-01-01T00:00:02.000Z", "status": 500, "durationMs": 7},
        ],
        "nextAttemptAt": "1970-01-01T00:01:00.000Z",
    }
    assert (delivered["state"], delivered["nextAttemptAt"]) == ("delivered", None)
    assert box.json_lines("deliveries", "--environment", "test") == []
