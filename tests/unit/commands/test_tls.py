"""`venuebox tls`: what is shown, brought, signed anew and forgotten."""

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from appliance.commands import tls
from appliance.core.files import write_json
from appliance.tls.acme import REQUESTED, State
from appliance.tls.authority import names_in
from appliance.tls.certificates import AUTHORITY, IMPORTED, LEAF, OBTAINED, read_certificate
from tests.unit.commands.conftest import VENUE
from tests.unit.tls.test_importing import a_certificate, pem_of


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def brought(tmp_path, key):
    """The options that name an own certificate and its key."""
    cert, private = tmp_path / "chain.pem", tmp_path / "key.pem"
    cert.write_bytes(a_certificate(key, days=3650))
    private.write_bytes(pem_of(key))
    return "--cert", str(cert), "--key", str(private)


def leaf(program):
    return read_certificate(program.data / "tls" / LEAF)


def as_browsers_show(fingerprint):
    return bytes.fromhex(fingerprint).hex(":").upper()


def authority(program):
    return read_certificate(program.data / "tls" / AUTHORITY)


def test_renewing_makes_what_is_missing_for_the_venues_name(box):
    assert box("tls", "renew") == 0, box.err

    assert "riad-atlas.local" in names_in(leaf(box)).dns
    shown = box.json("tls", "show")
    assert shown["imported"] is None
    assert "riad-atlas.local" in shown["names"]
    assert shown["daysLeft"] > 800
    assert box("tls", "show") == 0
    for fingerprint in (shown["fingerprint"], shown["authority"]):
        assert as_browsers_show(fingerprint) in box.out


def test_renewing_keeps_the_authority_unless_another_is_asked_for(box):
    box("tls", "renew")
    before, signed_by = leaf(box), authority(box)

    assert box("tls", "renew") == 0
    assert leaf(box).serial_number != before.serial_number
    assert authority(box) == signed_by

    assert box("tls", "renew", "--authority") == 0
    assert authority(box) != signed_by
    assert leaf(box).issuer == authority(box).subject


def test_an_imported_certificate_is_shown_beside_the_boxs_own_until_it_is_forgotten(box, brought):
    box("tls", "renew")
    before = box.json("tls", "show")

    assert box("tls", "import", *brought) == 0, box.err
    assert "box.example" in box.out
    shown = box.json("tls", "show")
    assert shown["imported"]["names"] == ["box.example"]
    assert shown["fingerprint"] == before["fingerprint"]
    box("tls", "show")
    for fingerprint in (shown["fingerprint"], shown["imported"]["fingerprint"]):
        assert as_browsers_show(fingerprint) in box.out

    assert box("tls", "forget") == 0
    assert box.json("tls", "show") == before
    box.complaint("tls", "forget")


def test_a_certificate_without_its_chain_is_used_and_remarked_on(box, brought, tmp_path):
    _, cert, _, private = brought
    chain = tmp_path / "fullchain.pem"
    chain.write_bytes((tmp_path / "chain.pem").read_bytes() * 2)

    assert box("tls", "import", "--cert", cert, "--key", private) == 0
    remarked = box.out
    assert box("tls", "import", "--cert", str(chain), "--key", private) == 0

    assert box.out != remarked
    assert remarked.startswith(box.out)


@pytest.mark.parametrize("environment", ["live", "test"])
def test_an_authority_that_a_terminal_may_trust_stays_under_another_name(box, environment):
    box("tls", "renew")
    rename(box, "dar-zitoun")
    box("tls", "renew")
    renamed = authority(box)
    assert "dar-zitoun.local" in names_in(leaf(box)).dns

    box("terminal", "create", "--environment", environment, "--name", "Entrée")
    rename(box, "riad-atlas")
    box("tls", "renew")

    assert authority(box) == renamed
    assert "riad-atlas.local" not in names_in(leaf(box)).dns


def rename(box, slug):
    venue = box.data.parent / f"{slug}.toml"
    venue.write_text(VENUE.replace("riad-atlas", slug), "utf-8")
    assert box("venue", "apply", str(venue)) == 0, box.err


def test_what_cannot_be_read_or_used_is_one_sentence_and_changes_nothing(box, brought, tmp_path):
    _, cert, _, private = brought

    assert "nowhere.pem" in box.complaint(
        "tls", "import", "--cert", str(tmp_path / "nowhere.pem"), "--key", private
    )
    box.complaint("tls", "import", "--cert", cert, "--key", cert)
    assert not (box.data / "tls" / IMPORTED).exists()


ACME = """
[server]
app_url = "{url}"

[acme]
directory = "https://authority.example/dir"
agree_terms = true
"""


def turn_on(box, url="https://box.example"):
    (box.data / "settings.toml").write_text(ACME.format(url=url), "utf-8")


@pytest.mark.parametrize("url", ["https://box.example", "https://riad-atlas.local"])
def test_nothing_is_asked_of_an_authority_unless_the_box_runs_under_a_public_name(box, url):
    box("tls", "renew")
    turn_on(box, url)
    before = sorted(box.data.rglob("*"))

    box.complaint("tls", "obtain")

    assert sorted(box.data.rglob("*")) == before
    shown = box.json("tls", "show")["acme"]
    assert shown["name"] == ("box.example" if url.endswith("example") else None)
    assert (shown["nextAttemptAt"] is None) == (shown["name"] is None)


def test_an_attempt_that_ends_at_once_is_not_missed(box, monkeypatch):
    box("tls", "renew")
    turn_on(box)

    def wake_box(_pipe):
        (box.data / "tls" / REQUESTED).unlink()
        state = State(("box.example", "", ""), ended_at=1, reason="no_answer")
        write_json(box.data / "tls" / "acme.json", state)
        return True

    monkeypatch.setattr(tls, "wake_box", wake_box)
    monkeypatch.setattr(tls, "_OBTAIN_SECONDS", 0)

    assert "box.example" in box.complaint("tls", "obtain")


def test_what_acme_obtained_is_forgotten_only_after_acme_was_turned_off(box, brought):
    box("tls", "renew")
    assert box("tls", "import", *brought) == 0
    (box.data / "tls" / IMPORTED).rename(box.data / "tls" / OBTAINED)
    turn_on(box)
    box.complaint("tls", "forget")
    assert box.json("tls", "show")["obtained"]["names"] == ["box.example"]

    (box.data / "settings.toml").unlink()

    assert box.json("tls", "show")["acme"] is None
    assert box("tls", "forget") == 0, box.err
    assert box.json("tls", "show")["obtained"] is None
