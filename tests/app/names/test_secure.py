"""Which requests need https, and to which https address pages are redirected."""

import asyncio
import plistlib
import ssl

import pytest
from aiohttp import HttpVersion10, web
from aiohttp.test_utils import make_mocked_request
from cryptography import x509

from appliance.core.errors import HttpsRequired
from appliance.core.settings import ServerSettings
from appliance.tls.authority import Names
from appliance.tls.certificates import Certificates
from tests.clocks import StoppedClock
from tests.conftest import running_box, with_settings
from tests.waiting import until
from web.connection import ConnectionLimit
from web.hosts import HttpsPolicy
from web.listeners import accept_tls
from web.public_pages import profile
from web.serve import listen

OTHER = "192.168.1.77"
METRICS = "m" * 16


def a_request(remote, *, scheme="http", path="/v1/venue", host="box.lan:8080", **headers):
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    request = make_mocked_request("GET", path, headers={"Host": host, **shown})
    return request.clone(remote=remote, scheme=scheme)


@pytest.mark.parametrize(
    ("settings", "remote", "scheme", "proto", "passes"),
    [
        ({}, OTHER, "http", None, False),
        ({}, OTHER, "https", None, True),
        ({}, "127.0.0.1", "http", None, True),
        ({}, "::1", "http", None, True),
        ({}, OTHER, "http", "https", False),  # the client's own header does not count
        ({"trusted_proxies": (OTHER,)}, OTHER, "http", "https", True),
        ({"trusted_proxies": (OTHER,)}, OTHER, "http", "http", False),
        ({"trusted_proxies": (OTHER,)}, OTHER, "http", None, False),
        ({"trusted_proxies": ("127.0.0.1",)}, "127.0.0.1", "http", "http", False),
        ({"allow_http": True}, OTHER, "http", None, True),
    ],
)
def test_keys_are_accepted_only_over_https(settings, remote, scheme, proto, passes):
    secure = HttpsPolicy(ServerSettings(**settings), 8443)
    request = a_request(remote, scheme=scheme, **({"X_Forwarded_Proto": proto} if proto else {}))

    if passes:
        secure.demand(request)
        # `allow_http` does not apply to passwords.
        assert secure.is_private(request) is not settings.get("allow_http", False)
    else:
        with pytest.raises(HttpsRequired):
            secure.demand(request)


@pytest.mark.parametrize(
    ("app_url", "port", "host", "base"),
    [("", 8443, "192.168.1.20:8080", "https://192.168.1.20:8443"),
     ("", 8443, "[fd00::2]:8080", "https://[fd00::2]:8443"), ("", 0, "riad.local", None),
     ("https://riad.example", 8443, "riad.example", "https://riad.example"),
     ("https://riad.example", 8443, "riad.local", "https://riad.local:8443"),
     ("https://riad.example", 0, "riad.local", "https://riad.example"),
     ("http://riad.example", 0, "riad.local", None)],
)  # fmt: skip
def test_the_https_address_is_the_public_one_or_the_boxs_own(app_url, port, host, base):
    secure = HttpsPolicy(ServerSettings(app_url=app_url), port)
    assert secure.base_for(a_request(OTHER, host=host)) == base


@pytest.mark.parametrize(
    ("host", "proto", "accept", "elsewhere"),
    [
        ("riad.example", "http", "text/html", "https://riad.example/door?lang=fr"),
        ("riad.example", "http", "*/*", None),
        ("riad.example", "https", "text/html", None),
        ("riad.example", None, "text/html", None),  # the proxy sends no header
        ("riad-atlas.local", "http", "text/html", None),
    ],
)
def test_plain_http_at_the_public_name_is_redirected(host, proto, accept, elsewhere):
    server = ServerSettings(app_url="https://riad.example", trusted_proxies=(OTHER,))
    said = {} if proto is None else {"X_Forwarded_Proto": proto}
    request = a_request(OTHER, path="/door?lang=fr", host=host, Accept=accept, **said)
    for tls_port in (8443, 0):
        redirect = HttpsPolicy(server, tls_port).redirect(request)
        assert (redirect and redirect.headers["Location"]) == elsewhere


@pytest.fixture
async def proxied(tmp_path, clock, settings):
    """A box behind a proxy on this machine."""
    behind = with_settings(
        api={"rate_limit_per_minute": 1000, "unauthenticated_per_minute": 1000},
        server={
            "trusted_proxies": ("127.0.0.1",),
            "app_url": "https://riad.example",
            "metrics_token": METRICS,
        },
    )
    async with running_box(tmp_path, clock, behind) as found:
        yield found


async def test_over_plain_http_api_calls_are_refused_and_pages_are_redirected(proxied):
    plain = {"X-Forwarded-Proto": "http", "X-Forwarded-For": OTHER}
    for path in ("/v1/venue", "/test/v1/venue", "/terminal/v1/me", "/test/terminal/v1/evening"):
        status, body, _ = await proxied.call("GET", path, headers=plain)
        assert (status, body["code"]) == (403, "HTTPS_REQUIRED"), path
    for path in ("/door", "/access/x", "/test/door"):
        browser = plain | {"Accept": "text/html", "Host": "riad.example"}
        answer = await proxied.client.get(path, headers=browser, allow_redirects=False)
        assert answer.status == 307, path
        assert answer.headers["Location"] == f"https://riad.example{path}"

    for path, token in (("/test/outbox", proxied.test_key), ("/metrics", METRICS)):
        for scheme, expected in (("http", 403), ("https", 200)):
            secret = {"Authorization": f"Bearer {token}", "X-Forwarded-Proto": scheme}
            assert (await proxied.client.get(path, headers=secret)).status == expected, path

    status, _, _ = await proxied.call("GET", "/v1/venue", headers={"X-Forwarded-Proto": "https"})
    assert status == 200
    assert (await proxied.client.get("/health", headers=plain)).status == 200


def some_certificates(folder):
    names = Names(("localhost", "riad.local"), ("127.0.0.1",))
    clock = StoppedClock("2026-11-21T19:00:00Z")
    found = Certificates(folder, clock, lambda: "Riad", lambda: names, lambda: False)
    found.prepare()
    return found


def test_the_iphone_profile_contains_the_authority_and_no_key(tmp_path):
    der = some_certificates(tmp_path).give_authority()

    found = plistlib.loads(profile("Riad", der))

    (payload,) = found["PayloadContent"]
    assert payload["PayloadType"] == "com.apple.security.root"
    assert x509.load_der_x509_certificate(payload["PayloadContent"]).issuer
    assert b"PRIVATE" not in profile("Riad", der)
    assert profile("Riad", der) == profile("Riad", der)


class Echo(asyncio.Protocol):
    """Sends `hello` after the handshake."""

    def connection_made(self, transport):
        transport.write(b"hello")


async def test_a_connection_counts_from_before_its_handshake_until_it_closes(tmp_path):
    certificates = some_certificates(tmp_path)
    limit = ConnectionLimit(2)
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = await accept_tls(listener, Echo, certificates.context, limit)
    client = ssl.create_default_context(cadata=certificates.give_authority())
    try:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await holds(limit, 2)
        with pytest.raises((ConnectionError, ssl.SSLError)):
            await asyncio.open_connection("127.0.0.1", port, ssl=client)
        for _, writer in silent:
            writer.close()
            await writer.wait_closed()
        for _ in range(5):
            await holds(limit, 0)
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=client, server_hostname="riad.local"
            )
            assert await reader.readexactly(5) == b"hello"
            writer.transport.abort()
        await holds(limit, 0)
    finally:
        server.close()


async def holds(limit, count):
    """Wait until `count` connections are counted."""
    await until(lambda: len(limit._address_of) == count, f"{count} counted connections")


@pytest.mark.parametrize(
    ("app_url", "settings", "host", "scheme", "strict"),
    [("https://riad.example", {}, "riad.example", "https", True),
     ("https://riad.example", {}, "riad.example", "http", False),
     ("https://riad.example", {}, "riad-atlas.local", "https", False),
     ("https://riad.example", {"allow_http": True}, "riad.example", "https", False),
     ("https://riad-atlas.local", {}, "riad-atlas.local", "https", False)],
)  # fmt: skip
async def test_strict_transport_security_is_sent_at_the_public_address(
    app_url, settings, host, scheme, strict
):
    secure = HttpsPolicy(ServerSettings(app_url=app_url, **settings), 8443)
    response = web.Response()
    await secure.add_hsts(a_request(OTHER, host=host, scheme=scheme), response)
    assert ("Strict-Transport-Security" in response.headers) == strict


@pytest.mark.parametrize(
    ("app_url", "remote", "host", "sits_here"),
    [
        ("", "127.0.0.1", "127.0.0.1:8080", True),
        ("http://192.168.1.20:8080", "::1", "localhost:8080", True),
        ("https://riad-atlas.local:8443", "127.0.0.1", "localhost", True),
        ("", "127.0.0.1", "riad.example", False),
        ("", OTHER, "127.0.0.1", False),
        # A tunnel on the box: a stranger can choose the Host header.
        ("https://riad.example", "127.0.0.1", "127.0.0.1:8080", False),
    ],
)
def test_requests_from_this_machine_are_distinguished_from_those_through_a_tunnel(
    app_url, remote, host, sits_here
):
    secure = HttpsPolicy(ServerSettings(app_url=app_url), 8443)
    assert secure.is_this_machine(a_request(remote, host=host)) == sits_here


@pytest.mark.parametrize("header", ["CF_Connecting_IP", "X_Forwarded_Proto", None])
def test_a_proxy_that_rewrites_the_host_does_not_count_as_this_machine(header):
    secure = HttpsPolicy(ServerSettings(), 8443)
    here = a_request("127.0.0.1", host="127.0.0.1:8080", **({header: "x"} if header else {}))
    if header is None:  # nginx with proxy_pass alone
        assert secure.is_this_machine(here)
        host = {"Host": "127.0.0.1:8080"}
        old = make_mocked_request("GET", "/metrics", headers=host, version=HttpVersion10)
        here = old.clone(remote="127.0.0.1")
    assert not secure.is_this_machine(here)
