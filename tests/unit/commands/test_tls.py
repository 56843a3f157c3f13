"""`venuebox tls`: importing a certificate, or obtaining one with ACME."""

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from appliance.commands import tls
from appliance.core.files import write_json
from appliance.tls.acme import REQUESTED, State
from appliance.tls.certificates import IMPORTED
from tests.unit.tls.test_importing import a_certificate, pem_of


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(65537, 2048)


@pytest.fixture
def brought(tmp_path, key):
    """Return the options that name the owner's certificate and its key."""
    cert, private = tmp_path / "chain.pem", tmp_path / "key.pem"
    cert.write_bytes(a_certificate(key, days=3650))
    private.write_bytes(pem_of(key))
    return "--cert", str(cert), "--key", str(private)


def test_a_certificate_without_its_chain_is_imported_with_a_warning(box, brought, tmp_path):
    _, cert, _, private = brought
    chain = tmp_path / "fullchain.pem"
    chain.write_bytes((tmp_path / "chain.pem").read_bytes() * 2)

    assert box("tls", "import", "--cert", cert, "--key", private) == 0
    remarked = box.out
    assert box("tls", "import", "--cert", str(chain), "--key", private) == 0

    assert box.out != remarked
    assert remarked.startswith(box.out)


def test_an_unusable_certificate_is_refused_in_one_sentence_and_changes_nothing(
    box, brought, tmp_path
):
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
def test_no_certificate_is_ordered_unless_the_box_has_a_public_name(box, url):
    turn_on(box, url)
    before = sorted(box.data.rglob("*"))

    box.complaint("tls", "obtain")

    assert sorted(box.data.rglob("*")) == before


def test_an_attempt_that_fails_immediately_is_still_reported(box, monkeypatch):
    turn_on(box)

    def wake_box(_pipe):
        (box.data / "tls" / REQUESTED).unlink()
        state = State(("box.example", "", ""), ended_at=1, reason="no_answer")
        write_json(box.data / "tls" / "acme.json", state)
        return True

    monkeypatch.setattr(tls, "wake_box", wake_box)
    monkeypatch.setattr(tls, "_OBTAIN_SECONDS", 0)

    assert "box.example" in box.complaint("tls", "obtain")
