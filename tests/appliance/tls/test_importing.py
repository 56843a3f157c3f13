"""A certificate of the owner's own."""

import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from appliance.clock import StoppedClock
from appliance.errors import Trouble
from appliance.tls.certificates import Certificates, make_context
from appliance.tls.files import IMPORTED
from appliance.tls.importing import forget_imported, import_certificate
from appliance.tls.names import Names
from appliance.tls.showing import describe

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


def test_an_own_certificate_is_served_until_it_is_forgotten(tmp_path, key):
    names = Names(("riad-atlas.local",), ())
    clock = StoppedClock("2026-11-21T19:00:00Z")
    certificates = Certificates(tmp_path, clock, lambda: "R", lambda: names, make_context())
    certificates.prepare()
    assert not describe(tmp_path, NOW)["imported"]

    found = import_certificate(tmp_path, a_certificate(key), pem_of(key), NOW)
    certificates.load()

    assert found == Names(("box.example",), ())
    assert (tmp_path / IMPORTED).stat().st_mode & 0o777 == 0o600
    shown = describe(tmp_path, NOW)
    assert (shown["imported"], shown["names"], shown["daysLeft"]) == (True, ["box.example"], 69)
    assert certificates.imported is not None
    assert forget_imported(tmp_path)
    assert not forget_imported(tmp_path)
    assert not describe(tmp_path, NOW)["imported"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"certificates": b"no"}, "certificate is not in PEM"),
        ({"key": b"no"}, "key is not in PEM"),
        ({"locked": True}, "locked by a password"),
        ({"other": True}, "do not belong together"),
        ({"days": 10}, "has ended"),
        ({"names": ()}, "names no host"),
    ],
)
def test_what_would_not_work_is_refused_and_changes_nothing(tmp_path, key, changes, said):
    about = {name: changes[name] for name in ("days", "names") if name in changes}
    certificates = changes.get("certificates", a_certificate(key, **about))
    used = rsa.generate_private_key(65537, 2048) if "other" in changes else key
    private = changes.get("key", pem_of(used, b"word" if "locked" in changes else None))

    with pytest.raises(Trouble, match=said):
        import_certificate(tmp_path, certificates, private, NOW)

    assert not (tmp_path / IMPORTED).exists()
