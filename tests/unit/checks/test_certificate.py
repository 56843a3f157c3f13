"""The checks of the certificates."""

from dataclasses import replace

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from appliance.clock import SystemClock
from appliance.core.settings import ServerSettings
from appliance.tls.acme import State
from appliance.tls.authority import wanted_names
from appliance.tls.certificates import IMPORTED, OBTAINED, Certificates, import_certificate
from tests.clocks import StoppedClock
from tests.unit.checks.conftest import english
from tests.unit.tls.test_importing import a_certificate, pem_of

ADDRESSES = ["192.168.1.20"]
DAY_MS = 86_400_000


@pytest.fixture(autouse=True)
def at_home(monkeypatch):
    """A machine with one address on the venue's network."""
    monkeypatch.setattr("appliance.checks.network.own_addresses", lambda: ADDRESSES)


def certificates(ward, slug="riad-atlas"):
    """Add the certificates that a box with this name creates now."""
    names = wanted_names(slug, ServerSettings(), ADDRESSES)
    made = Certificates(
        ward.root / "tls", SystemClock(), lambda: "Riad", lambda: names, lambda: False
    )
    made.prepare()
    return made


def test_the_certificate_check_is_skipped_without_https_or_a_certificate(ward):
    assert ward.find("certificate") is None

    certificates(ward)
    for server in ({"host": "127.0.0.1"}, {"host": "localhost"}, {"tls_port": 0}):
        ward.set(server=server)
        assert ward.find("certificate") is None


@pytest.mark.parametrize(
    ("left", "status"), [(818, "ok"), (21, "ok"), (20, "warn"), (3, "warn"), (2, "fail")]
)
def test_a_certificate_about_to_expire_is_reported_with_the_days_left(ward, left, status):
    ward.set(server={})
    certificates(ward)
    later = StoppedClock()
    later.milliseconds = SystemClock().now() + round((819 - left - 0.5) * DAY_MS)
    ward.become(clock=later)

    found = ward.find("certificate")

    assert (found.status, f" {left}." in english(found)) == (status, True)


def test_a_name_missing_from_the_certificate_is_reported(ward):
    ward.set(server={})
    certificates(ward, slug="another")

    found = ward.find("certificate")

    assert found.status == "warn"
    assert "riad-atlas.local" in english(found)


@pytest.mark.parametrize(("host", "status"), [("0.0.0.0", "ok"), ("::", "warn")])  # noqa: S104 - only compared
def test_an_address_that_the_box_does_not_listen_on_needs_no_certificate(
    ward, monkeypatch, host, status
):
    certificates(ward)
    changing = "2a02:aaaa:1:1::20"  # a provider that changes the prefix each day
    monkeypatch.setattr("appliance.checks.network.own_addresses", lambda: [*ADDRESSES, changing])
    ward.set(server={"host": host})

    assert ward.status("certificate") == status


def bring(ward, *names, days=3650):
    key = rsa.generate_private_key(65537, 2048)
    now = StoppedClock("2026-11-02T00:00:00Z").now()
    pem = a_certificate(key, days=days, names=names)
    import_certificate(ward.root / "tls", pem, pem_of(key), now)
    ward.become(clock=StoppedClock("2026-11-21T19:00:00Z"))


@pytest.mark.parametrize(("days", "status"), [(3650, "ok"), (30, "warn"), (22, "fail")])
def test_an_imported_certificate_is_checked_for_its_expiry(ward, days, status):
    ward.set(server={"app_url": "https://box.example"})
    certificates(ward)

    bring(ward, "box.example", days=days)

    assert ward.status("certificate") == status


@pytest.mark.parametrize(
    ("app_url", "names", "status"),
    [("https://box.example", ("box.example",), "ok"),
     ("https://Box.example:8443", ("*.example",), "ok"),
     ("https://box.example", ("direct.example",), "warn"),
     ("https://a.box.example", ("*.example",), "warn"),
     ("https://riad-atlas.local:8443", ("direct.example",), "warn"),
     ("", ("box.example",), "ok")],
)  # fmt: skip
def test_an_imported_certificate_must_cover_the_address_that_guests_get(
    ward, app_url, names, status
):
    ward.set(server={"app_url": app_url})
    certificates(ward)
    bring(ward, *names)

    found = ward.find("certificate")

    assert found.status == status
    assert ("direct.example" in english(found)) == ("direct.example" in names)


ACME = {"directory": "https://authority.example/dir", "agree_terms": True}


def obtained(ward, state, days=90):
    """Record a certificate obtained in November, and the later attempts."""
    ward.set(server={"app_url": "https://box.example"}, acme=ACME)
    certificates(ward)
    if days:
        bring(ward, "box.example", days=days)
        (ward.root / "tls" / IMPORTED).rename(ward.root / "tls" / OBTAINED)
    subject = ("box.example", ACME["directory"], "tls-alpn-01")
    state = replace(state, subject=subject, obtained_from=ACME["directory"])
    (ward.root / "tls" / "acme.json").write_bytes(msgspec.json.encode(state))


@pytest.mark.parametrize(
    ("days", "reason", "status"),
    [(90, "", "ok"), (90, "dns", "warn"), (22, "dns", "fail"), (0, "", "warn"), (0, "caa", "fail")],
)
def test_an_acme_certificate_is_checked_for_its_last_renewal(ward, days, reason, status):
    obtained(ward, State(attempts=(1,), reason=reason, detail="why it is so"), days)

    found = ward.find("acme")

    assert found.status == status
    assert ("why it is so" in english(found)) == bool(reason)


def test_acme_is_checked_only_if_enabled_and_a_missing_setting_is_named(ward):
    obtained(ward, State())
    ward.set(server={"app_url": "https://box.example"})
    assert ward.status("acme") is None
    assert ward.status("certificate") == "ok"  # the earlier certificate is used until it expires
    ward.set(server={}, acme=ACME)
    assert ward.status("acme") == "warn"

    ward.set(server={"app_url": "https://box.example"}, acme=ACME)
    bring(ward, "box.example")

    assert ward.status("acme") == "ok"
