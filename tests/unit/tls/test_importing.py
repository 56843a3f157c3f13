"""A certificate that the owner provides."""

import datetime as dt
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from appliance.core.errors import OperatorError
from appliance.tls.authority import Names
from appliance.tls.certificates import (
    IMPORTED,
    LEAF,
    Certificates,
    describe,
    import_certificate,
    read_certificate,
)
from tests.clocks import StoppedClock
from tests.unit.tls.test_certificates import shake

NOW = StoppedClock("2026-11-21T19:00:00Z").now()
PEM = serialization.Encoding.PEM


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(65537, 2048)


def a_certificate(key, *, days=90, names=("box.example",)):
    began = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "box.example")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(began)
        .not_valid_after(began + dt.timedelta(days=days))
    )
    if names:
        said = x509.SubjectAlternativeName([x509.DNSName(one) for one in names])
        builder = builder.add_extension(said, critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(PEM)


def pem_of(key, password=None):
    how = serialization.BestAvailableEncryption(password) if password else (
        serialization.NoEncryption()
    )  # fmt: skip
    return key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, how)


@pytest.fixture
def certificates(tmp_path):
    """The certificates of a box under `riad-atlas.local` on the venue's network."""
    names = Names(("localhost", "riad-atlas.local"), ("192.168.1.20",))
    clock = StoppedClock("2026-11-21T19:00:00Z")
    made = Certificates(tmp_path, clock, lambda: "R", lambda: names, lambda: True)
    made.prepare()
    return made


def shown(certificates, name):
    """Return the certificate for a client that requests `name`, or no name."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    asking, _ = shake(client, certificates.context, name)
    return x509.load_der_x509_certificate(asking.getpeercert(binary_form=True))


def private_key(kind):
    if kind == "rsa":
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize("kind", ["ec", "rsa"])
def test_an_imported_certificate_is_served_only_for_its_own_names(certificates, tmp_path, kind):
    key = private_key(kind)
    pem = a_certificate(key, names=("box.example", "*.riad.example", "riad-atlas.local"))
    own, brought = read_certificate(tmp_path / LEAF), x509.load_pem_x509_certificate(pem)
    assert shown(certificates, "box.example") == own

    found = import_certificate(tmp_path, pem, pem_of(key), NOW)
    certificates.load()

    assert "box.example" in found.dns
    assert (tmp_path / IMPORTED).stat().st_mode & 0o777 == 0o600
    for name in ("box.example", "BOX.example", "www.riad.example"):
        assert shown(certificates, name) == brought
    for name in (None, "riad-atlas.local", "localhost", "riad.example", "a.b.riad.example"):
        assert shown(certificates, name) == own
    described = describe(tmp_path, NOW)
    assert described["imported"]["daysLeft"] == 69
    assert "riad-atlas.local" in described["names"]

    (tmp_path / IMPORTED).unlink()
    certificates.load()

    assert shown(certificates, "box.example") == own
    assert not describe(tmp_path, NOW)["imported"]


@pytest.mark.parametrize("kinds", [("ec", "rsa"), ("rsa", "ec")])
def test_a_second_import_replaces_the_certificate_immediately_whatever_the_key_type(
    certificates, tmp_path, kinds
):
    for kind in kinds:
        key = private_key(kind)
        pem = a_certificate(key)
        import_certificate(tmp_path, pem, pem_of(key), NOW)
        certificates.load()

        assert shown(certificates, "box.example") == x509.load_pem_x509_certificate(pem)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"certificates": b"no"}, "certificate is not in PEM"),
     ({"key": b"no"}, "key is not in PEM"), ({"locked": True}, "key is encrypted"),
     ({"other": True}, "does not match"), ({"days": 10}, "has expired"),
     ({"names": ()}, "has no DNS name")],
)  # fmt: skip
def test_an_unusable_certificate_is_refused_and_changes_nothing(tmp_path, key, changes, said):
    about = {name: changes[name] for name in ("days", "names") if name in changes}
    certificates = changes.get("certificates", a_certificate(key, **about))
    used = rsa.generate_private_key(65537, 2048) if "other" in changes else key
    private = changes.get("key", pem_of(used, b"word" if "locked" in changes else None))

    with pytest.raises(OperatorError, match=said):
        import_certificate(tmp_path, certificates, private, NOW)

    assert not (tmp_path / IMPORTED).exists()
