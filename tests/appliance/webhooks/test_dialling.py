"""From a name to a connection that is secure, or to the word for what prevented it."""

import asyncio
import datetime as dt
import os
import socket
import ssl
from ipaddress import IPv4Address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.appliance.webhooks.attempts import LATE, REQUEST, SHORT, SHORT_CONNECT, timed
from tests.appliance.webhooks.receivers import a_server, an_answer


async def test_nobody_listens(make_client):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        client = make_client(f"http://127.0.0.1:{bound.getsockname()[1]}/")

        outcome = await client.post(REQUEST)

    assert (outcome.phase, outcome.code) == ("connect", "conn_refused")


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (OSError(101, "network is unreachable"), "no_route"),
        (OSError(113, "no route to host"), "unreachable"),
        (ConnectionResetError(), "reset"),
        (OSError("Multiple exceptions"), "failed"),
    ],
)
async def test_each_way_of_not_connecting_has_its_name(make_client, receiver, trouble, code):
    async def connect(_addresses, _port):
        raise trouble

    outcome = await make_client(receiver.url, connect=connect).post(REQUEST)

    assert (outcome.phase, outcome.code) == ("connect", code)


async def test_an_address_that_swallows_packets_is_given_up_early(make_client, receiver):
    async def connect(_addresses, _port):
        await asyncio.sleep(60)

    client = make_client(receiver.url, connect=connect, budgets=SHORT_CONNECT)

    outcome, seconds = await timed(client.post(REQUEST))

    assert (outcome.phase, outcome.code) == ("connect", "conn_timeout")
    assert seconds < LATE


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (socket.gaierror(socket.EAI_NONAME, "x"), "dns_nxdomain"),
        (socket.gaierror(socket.EAI_AGAIN, "x"), "dns_temp"),
        (socket.gaierror(socket.EAI_FAIL, "x"), "dns_temp"),
        (TimeoutError(), "dns_temp"),
    ],
)
async def test_each_way_of_not_resolving_has_its_name(make_client, names, trouble, code):
    names.known["receiver.example"] = trouble

    outcome = await make_client("http://receiver.example/").post(REQUEST)

    assert (outcome.phase, outcome.code) == ("dns", code)


@pytest.mark.proves("decision: Private addresses?")
async def test_the_very_addresses_that_were_checked_are_dialled(make_client, names):
    names.known["receiver.example"] = ["93.184.216.34", "93.184.216.35"]
    dialled = []

    async def connect(addresses, port):
        dialled.append((list(addresses), port))
        raise ConnectionRefusedError

    await make_client("http://receiver.example:8080/", connect=connect).post(REQUEST)

    assert dialled == [([IPv4Address("93.184.216.34"), IPv4Address("93.184.216.35")], 8080)]
    assert names.asked == ["receiver.example"]


@pytest.mark.proves("decision: Private addresses?")
@pytest.mark.parametrize(
    "inside",
    ["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "0.0.0.0",  # noqa: S104 - it is refused
     "224.0.0.1", "255.255.255.255", "::", "fe80::1", "fd00::1", "::ffff:10.0.0.1",
     "64:ff9b::a00:1", "2002:a00:1::1", "2606:4700::5efe:a00:1"],
)  # fmt: skip
async def test_a_blocked_address_sees_no_connection(make_client, names, inside):
    names.known["inside.example"] = ["93.184.216.34", inside]
    dialled = []

    async def connect(addresses, _port):
        dialled.append(addresses)

    outcome = await make_client("https://inside.example/", connect=connect).post(REQUEST)

    assert (outcome.phase, outcome.code) == ("guard", "blocked")
    assert dialled == []


async def test_the_second_address_is_tried_when_the_first_refuses(make_client, names, receiver):
    names.known["receiver.example"] = ["127.0.0.9", "127.0.0.1"]
    url = f"http://receiver.example:{receiver.port}/"

    outcome = await make_client(url).post(REQUEST)

    assert outcome.delivered
    assert outcome.remote_address == "127.0.0.1"


class TestTls:
    """Certificates are always checked."""

    async def test_a_certificate_that_is_trusted_and_fits_the_name(self, make_client, names):
        outcome = await attempt_over_tls(make_client, names, "receiver.example")

        assert outcome.delivered

    @pytest.mark.parametrize(
        "certificate",
        [
            {"name": "other.example"},
            {"days": -1},
            {"trusted": False},
        ],
        ids=["another name", "expired", "self-signed"],
    )
    async def test_a_bad_certificate_is_refused_before_a_byte_is_sent(
        self, make_client, names, certificate
    ):
        outcome = await attempt_over_tls(make_client, names, **certificate)

        assert (outcome.phase, outcome.code) == ("tls", "tls_cert")

    async def test_a_server_without_tls_on_the_port(self, make_client, names, receiver):
        names.known["receiver.example"] = ["127.0.0.1"]
        context = ssl.create_default_context()
        url = f"https://receiver.example:{receiver.port}/"

        async def plain(_reader, writer):
            writer.write(an_answer(400))
            await writer.drain()

        async with a_server(plain) as port:
            url = f"https://receiver.example:{port}/"
            outcome = await make_client(url, trust=trusting(context)).post(REQUEST)

        assert (outcome.phase, outcome.code) == ("tls", "tls_other")

    async def test_a_slow_handshake_has_what_is_left_of_the_attempt(self, make_client, names):
        names.known["receiver.example"] = ["127.0.0.1"]
        certificate, key = a_certificate("receiver.example", 1)
        server, context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
        load(server, certificate, key)
        context.load_verify_locations(cadata=certificate.decode())
        with socket.create_server(("127.0.0.1", 0)) as busy:  # the kernel takes up, nobody else
            url = f"https://receiver.example:{busy.getsockname()[1]}/"
            client = make_client(url, trust=trusting(context), budgets=SHORT_CONNECT)
            attempt = asyncio.create_task(client.post(REQUEST))
            await asyncio.sleep(2 * SHORT_CONNECT.connect)

            async with a_server(give_ok, sock=busy, ssl=server):
                outcome = await attempt

        assert outcome.delivered

    async def test_a_handshake_that_never_ends(self, make_client, names):
        names.known["receiver.example"] = ["127.0.0.1"]

        async def stall(_reader, _writer):
            await asyncio.sleep(60)

        async with a_server(stall) as port:
            client = make_client(
                f"https://receiver.example:{port}/",
                trust=trusting(ssl.create_default_context()),
                budgets=SHORT,
            )
            outcome, seconds = await timed(client.post(REQUEST))

        assert (outcome.phase, outcome.code) == ("tls", "timeout")
        assert seconds < LATE


def trusting(context):
    async def trust():
        return context

    return trust


async def attempt_over_tls(make_client, names, name="receiver.example", *, days=1, trusted=True):
    """One attempt at https://receiver.example/ whose server has such a certificate."""
    names.known["receiver.example"] = ["127.0.0.1"]
    certificate, key = a_certificate(name, days)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(server, certificate, key)
    context = ssl.create_default_context()
    if trusted:
        context.load_verify_locations(cadata=certificate.decode())

    async with a_server(give_ok, ssl=server) as port:
        client = make_client(f"https://receiver.example:{port}/", trust=trusting(context))
        return await client.post(REQUEST)


async def give_ok(reader, writer):
    await reader.readuntil(b"{}")
    writer.write(an_answer(200))
    await writer.drain()


def a_certificate(name, days):
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=10))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    pem = serialization.Encoding.PEM
    return certificate.public_bytes(pem), key.private_bytes(pem, form, plain)


def load(context, certificate, key):
    """An SSLContext reads its certificate from a file only: from one that has no name."""
    handle = os.memfd_create("certificate")
    try:
        os.write(handle, certificate + key)
        context.load_cert_chain(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)
