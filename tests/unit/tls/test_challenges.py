"""Only an authority that validates the name gets the challenge's answer."""

import ssl
from hashlib import sha256

import pytest
from cryptography import x509

from appliance.tls.authority import Names
from appliance.tls.certificates import LEAF, Certificates, read_certificate
from tests.clocks import StoppedClock
from tests.unit.tls.test_certificates import shake

PROOF = "token.thumbprint"
ACME_IDENTIFIER = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.31")


@pytest.fixture
def certificates(tmp_path):
    names = Names(("localhost",), ("127.0.0.1",))
    made = Certificates(tmp_path, StoppedClock(), lambda: "R", lambda: names, lambda: True)
    made.prepare()
    return made


def connect(certificates, name, *protocols):
    """Return the certificate and the protocol for a client that offers `protocols`."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    if protocols:
        client.set_alpn_protocols(protocols)
    asking, _ = shake(client, certificates.context, name)
    shown = x509.load_der_x509_certificate(asking.getpeercert(binary_form=True))
    return shown, asking.selected_alpn_protocol()


def test_only_an_acme_validation_request_gets_the_challenge_certificate(certificates, tmp_path):
    own = read_certificate(tmp_path / LEAF)
    challenges = certificates.challenges
    with challenges.answering(certificates.context):
        challenges.show("box.example", PROOF, tmp_path)

        proof, protocol = connect(certificates, "box.example", "acme-tls/1")
        assert protocol == "acme-tls/1"
        names = proof.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == ["box.example"]
        extension = proof.extensions.get_extension_for_oid(ACME_IDENTIFIER)
        assert extension.critical
        assert extension.value.value[2:] == sha256(PROOF.encode()).digest()
        assert connect(certificates, "BOX.example", "acme-tls/1")[0] == proof

        # Guests get the usual certificate under the same name.
        assert connect(certificates, "box.example", "http/1.1") == (own, "http/1.1")
        assert connect(certificates, "box.example") == (own, None)
        assert connect(certificates, "other.example", "acme-tls/1")[0] == own
        assert connect(certificates, None, "acme-tls/1")[0] == own

    assert connect(certificates, "box.example", "acme-tls/1")[0] == own
    assert not list(tmp_path.glob("*challenge*"))


def test_no_challenge_is_answered_after_the_order_ends(certificates, tmp_path):
    own = read_certificate(tmp_path / LEAF)
    with certificates.challenges.answering(certificates.context):
        pass
    certificates.challenges.show("box.example", PROOF, tmp_path)

    assert connect(certificates, "box.example", "acme-tls/1")[0] == own
