"""Receivers with invalid TLS, and receivers with private certificates."""

import datetime as dt
import ipaddress
import ssl
import warnings

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from appliance.webhooks.client import OwnAuthority, SystemTrust
from appliance.webhooks.endpoints import trust_receiver
from tests.webhooks.attempts import REQUEST
from tests.webhooks.receivers import Receiver, a_server
from tests.webhooks.test_dialling import load

HOST = "receiver.example"


class Certificate:
    """A certificate with a new key, signed by `issuer` or self-signed, from 2000 on."""

    def __init__(self, name=HOST, *, issuer=None, until=2099, authority=False):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        signer = issuer or self
        try:
            alternative = x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            alternative = x509.DNSName(name)
        self.made = (
            x509.CertificateBuilder()
            .subject_name(self.name)
            .issuer_name(signer.name)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(dt.datetime(2000, 1, 1, tzinfo=dt.UTC))
            .not_valid_after(dt.datetime(until, 1, 1, tzinfo=dt.UTC))
            .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .sign(signer.key, hashes.SHA256())
        )

    @property
    def pem(self):
        return self.made.public_bytes(serialization.Encoding.PEM).decode()

    def context(self):
        """Return the TLS context of a server with this certificate."""
        form = serialization.PrivateFormat.PKCS8
        key = self.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load(server, self.pem.encode(), key)
        return server


@pytest.fixture(scope="module")
def authority():
    return Certificate("Own authority", authority=True)


@pytest.fixture
def attempt(make_client, names):
    """`outcome, receiver = await attempt(server context, trust)` at https://receiver.example."""

    async def post(context, trust, host=HOST):
        names.known[HOST] = ["127.0.0.1"]
        receiver = Receiver()
        async with a_server(receiver.converse, ssl=context) as port:
            client = make_client(f"https://{host}:{port}/", trust=trust)
            return await client.post(REQUEST), receiver

    return post


@pytest.mark.parametrize(
    ("trust", "shown", "code"),
    [
        ("system", {"until": 2001}, "tls_cert"),
        ("system", {"issuer": None}, "tls_cert"),
        ("authority", {"until": 2001}, "tls_cert"),
        ("authority", {"name": "other.example"}, "tls_cert"),
        ("authority", {"old tls": True}, "tls_other"),
        ("authority", {"issuer": None}, "tls_cert"),
        ("another certificate", {"issuer": None}, "tls_cert"),
    ],
)
async def test_no_byte_of_a_request_is_sent_to_a_receiver_with_invalid_tls(
    attempt, authority, tls_looks_at_dates, trust, shown, code
):
    options = {"issuer": authority} | {n: v for n, v in shown.items() if n != "old tls"}
    certificate, other = Certificate(**options), Certificate(issuer=None)
    context = certificate.context()
    if "old tls" in shown:
        only_tls_1_0(context)
    trusts = {
        "system": SystemTrust(), "authority": OwnAuthority(authority.pem),
        "another certificate": OwnAuthority(other.pem),
    }  # fmt: skip

    outcome, receiver = await attempt(context, trusts[trust])

    assert (outcome.phase, outcome.code) == ("tls", code)
    assert receiver.requests == []


@pytest.mark.parametrize(
    ("trust", "options", "host"),
    [("authority", {}, HOST), ("authority", {"name": "127.0.0.1"}, "127.0.0.1"),
     ("its own certificate", {"issuer": None}, HOST)],
)  # fmt: skip
async def test_a_private_authority_or_the_certificate_itself_can_be_trusted(
    attempt, authority, trust, options, host
):
    certificate = Certificate(**{"issuer": authority} | options)
    trusted = {
        "authority": OwnAuthority(authority.pem),
        "its own certificate": OwnAuthority(certificate.pem),
    }

    outcome, _ = await attempt(certificate.context(), trusted[trust], host)

    assert outcome.delivered


def only_tls_1_0(context):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    context.set_ciphers("ALL:@SECLEVEL=0")


async def test_a_newly_trusted_certificate_applies_to_the_next_connection(
    world, names, authority, timer, change_outside
):
    change_outside(trust=SystemTrust())
    names.known[HOST] = ["127.0.0.1"]
    certificate, receiver = Certificate(issuer=authority), Receiver()
    async with a_server(receiver.converse, ssl=certificate.context()) as port:
        endpoint, _ = await world.register(f"https://{HOST}:{port}/")
        await world.start()
        outcomes = []
        for ca in (None, authority.pem, None):
            await world.database.write(trust_receiver, endpoint.id, ca)
            await world.book()
            await world.recorded(len(outcomes) + 1)
            outcomes = [outcome for _, outcome in world.attempts()]
        await world.stop()

    assert outcomes == ["tls_cert", "delivered", "tls_cert"]
    assert len(receiver.requests) == 1
