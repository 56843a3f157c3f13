"""When a certificate is ordered, and the meanings of the authority's errors."""

from dataclasses import replace

import pytest
import requests
from acme import challenges as library
from acme import errors, messages
from cryptography.hazmat.primitives.asymmetric import ec

from appliance.clock import DAY_MS
from appliance.core.errors import OperatorError
from appliance.core.settings import AcmeSettings, ServerSettings, Settings, parse_settings
from appliance.tls import acme_client
from appliance.tls.acme import REASONS, Plan, State, _write_state, public_name, read_plan
from appliance.tls.certificates import (
    IMPORTED,
    OBTAINED,
    AcmeError,
    Challenges,
    Order,
    import_certificate,
)
from tests.clocks import StoppedClock
from tests.unit.tls.test_importing import a_certificate, pem_of

NOW = StoppedClock("2026-11-21T19:00:00Z").now()
BEGAN = StoppedClock("2026-11-01T00:00:00Z").now()  # of `a_certificate`
MINUTE = 60_000
DIRECTORY = "https://authority.example/dir"
SETTINGS = Settings(
    server=ServerSettings(app_url="https://box.example"),
    acme=AcmeSettings(directory=DIRECTORY, agree_terms=True),
)
SUBJECT = ("box.example", DIRECTORY, "tls-alpn-01")


def store(folder, file=OBTAINED, **about):
    key = ec.generate_private_key(ec.SECP256R1())
    import_certificate(folder, a_certificate(key, **about), pem_of(key), NOW, file)


def due(folder, now=NOW, **changes):
    return read_plan(folder, replace(SETTINGS, **changes)).due(now)


@pytest.mark.parametrize(
    ("url", "name"),
    [("https://box.example", "box.example"), ("https://Box.Example:8443", "box.example"),
     ("http://box.example", ""), ("https://riad.local", ""), ("https://box", ""), ("", ""),
     ("https://198.51.100.7", ""), ("https://192.168.1.20", ""), ("https://[2001:db8::1]", ""),
     ("https://bôx.example", "")],
)  # fmt: skip
def test_a_certificate_is_ordered_only_for_a_public_name(tmp_path, url, name):
    assert public_name(url) == name
    assert (due(tmp_path, server=ServerSettings(app_url=url)) == 0) == bool(name)


def test_no_certificate_is_ordered_without_an_acme_directory(tmp_path):
    assert due(tmp_path, acme=AcmeSettings()) is None


def test_an_order_is_due_immediately_and_then_in_the_last_third_at_a_random_time(tmp_path):
    assert due(tmp_path) == 0
    found = set()
    for days in (90, 90, 90):
        store(tmp_path, days=days)
        found.add(due(tmp_path))
        assert due(tmp_path) == due(tmp_path)  # a restart changes nothing
        assert BEGAN + 55.5 * DAY_MS <= due(tmp_path) <= BEGAN + 60 * DAY_MS


def test_an_imported_certificate_for_the_name_turns_acme_off(tmp_path):
    store(tmp_path, IMPORTED, names=("other.example",))
    assert due(tmp_path) == 0

    store(tmp_path, IMPORTED, names=("*.example",))

    assert due(tmp_path) is None


@pytest.mark.parametrize(
    ("failures", "minutes"), [(1, 5), (2, 20), (3, 80), (4, 320), (5, 1280), (6, 1440), (20, 1440)]
)
@pytest.mark.parametrize("reason", ["", "dns"])  # without a reason, it was interrupted
def test_each_attempt_waits_longer_than_the_one_before(tmp_path, failures, minutes, reason):
    _write_state(tmp_path, State(SUBJECT, attempts=(NOW,) * failures, reason=reason))

    assert due(tmp_path) == NOW + minutes * MINUTE


def test_after_a_rate_limit_no_order_is_made_for_a_day(tmp_path):
    _write_state(tmp_path, State(SUBJECT, attempts=(NOW,), reason="rate_limited"))

    assert due(tmp_path) == NOW + DAY_MS


def test_changing_the_directory_name_or_challenge_resets_the_waiting_time(tmp_path):
    failed = State(SUBJECT, attempts=(NOW,), reason="dns", obtained_from=DIRECTORY)
    _write_state(tmp_path, failed)
    store(tmp_path, days=90)
    assert due(tmp_path) > NOW

    for acme in ({"directory": "https://other.example/dir"}, {"challenge": "dns-01"}):
        changed = replace(SETTINGS.acme, **acme)
        # A certificate of the same authority is kept after any challenge.
        assert (due(tmp_path, acme=changed) == 0) == ("directory" in acme)
    assert due(tmp_path, server=ServerSettings(app_url="https://new.example")) == 0


def test_setting_the_clock_back_does_not_delay_the_certificate(tmp_path):
    _write_state(tmp_path, State(SUBJECT, attempts=(NOW + 400 * DAY_MS,), reason="dns"))

    assert due(tmp_path) == 0


def test_certificates_that_expire_immediately_are_ordered_only_once_a_day(tmp_path):
    done = State(SUBJECT, obtained_at=NOW, obtained_from=DIRECTORY)
    _write_state(tmp_path, done)
    store(tmp_path, days=21)

    assert due(tmp_path) == NOW + DAY_MS


@pytest.mark.parametrize("content", [b"", b"{", b'{"attempts": "x"}', b"\xff"])
def test_a_damaged_acme_record_is_ignored(tmp_path, content):
    (tmp_path / "acme.json").write_bytes(content)

    assert due(tmp_path) == 0


def test_a_person_can_request_a_certificate_only_a_few_times_an_hour():
    attempts = tuple(NOW - minute * MINUTE for minute in range(4))

    assert Plan("n", State(attempts=attempts[1:]), False).may_ask(NOW)
    assert not Plan("n", State(attempts=attempts), False).may_ask(NOW)
    assert Plan("n", State(attempts=attempts), False).may_ask(NOW + 60 * MINUTE)


@pytest.mark.parametrize(
    ("said", "missing"),
    [("", "agree_terms"), ('agree_terms = true\nchallenge = "dns-01"', "dns_hook")],
)
def test_incomplete_acme_settings_are_refused_and_the_missing_one_is_named(said, missing):
    with pytest.raises(OperatorError, match=missing):
        parse_settings(f'[acme]\ndirectory = "{DIRECTORY}"\n{said}', {})


def failing(monkeypatch, error):
    """Let the authority answer the first request with `error`. Return the resulting failure."""

    def get(*_, **__):
        raise error

    monkeypatch.setattr("acme.client.ClientNetwork.get", get)


def attempt(folder):
    with pytest.raises(AcmeError) as raised:
        acme_client.obtain(Order(SETTINGS.acme, "box.example", folder, Challenges()))
    assert raised.value.reason in REASONS
    return raised.value


@pytest.mark.parametrize(
    ("code", "reason"),
    [("rateLimited", "rate_limited"), ("caa", "caa"), ("dns", "dns"), ("dnssec", "dns"),
     ("connection", "unreached"), ("tls", "unreached"), ("unauthorized", "account"),
     ("rejectedIdentifier", "refused"), ("badCSR", "refused"), ("invalidContact", "account"),
     ("externalAccountRequired", "account"), ("serverInternal", "no_answer")],
)  # fmt: skip
def test_each_error_of_the_certificate_authority_maps_to_one_reason(
    monkeypatch, tmp_path, code, reason
):
    said = messages.Error.with_code(code, detail="too many\ncertificates\x1b[1m, see docs.")
    failing(monkeypatch, said)

    found = attempt(tmp_path)

    assert found.reason == reason
    assert found.detail == "too many certificates [1m, see docs"


def test_the_first_of_several_errors_is_reported(monkeypatch, tmp_path):
    first = messages.Error.with_code("caa", detail="CAA record forbids issuance")
    other = messages.Error.with_code("dns", detail="no")
    failing(monkeypatch, messages.Error.with_code("compound", subproblems=(first, other)))

    assert (attempt(tmp_path).reason, attempt(tmp_path).detail) == ("caa", first.detail)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(requests.ConnectionError("refused"), "no_answer"), (requests.Timeout(), "no_answer"),
     (errors.TimeoutError(), "no_answer"), (errors.MissingNonce, "refused"),
     (ValueError("no JSON"), "refused"), (KeyError("newAccount"), "refused"),
     (OSError(28, "No space left on device"), "refused")],
)  # fmt: skip
def test_unexpected_errors_are_reported_too(monkeypatch, tmp_path, error, reason):
    if error is errors.MissingNonce:
        error = errors.ClientError("<html>")
    failing(monkeypatch, error)

    assert attempt(tmp_path).reason == reason


def test_a_failed_challenge_is_reported_with_its_own_error():
    said = messages.Error.with_code("unauthorized", detail="wrong certificate")
    chall = library.HTTP01(token=b"x" * 16)
    failed = messages.ChallengeBody(
        chall=chall, uri="u", status=messages.STATUS_INVALID, error=said
    )
    body = messages.Authorization(challenges=(failed,))
    resource = messages.AuthorizationResource(body=body, uri="u")

    found = acme_client._explain_failure(errors.ValidationError([resource]))

    assert (found.reason, found.detail) == ("unreached", "wrong certificate")


@pytest.mark.process
def test_a_failing_or_missing_dns_hook_is_reported_with_its_last_output(tmp_path):
    hook = tmp_path / "hook"
    hook.write_text("#!/bin/sh\necho before >&2\necho no such zone >&2\nexit 3\n")
    hook.chmod(0o700)

    with pytest.raises(AcmeError) as failed:
        acme_client._run_hook(str(hook), "add", "_acme-challenge.box.example", "value")
    assert (failed.value.reason, failed.value.detail) == ("dns_hook", "no such zone")
    with pytest.raises(AcmeError) as missing:
        acme_client._run_hook(str(tmp_path / "nothing"), "add", "name", "value")
    assert missing.value.reason == "dns_hook"
