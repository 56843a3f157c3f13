"""The check from outside, which shows whether the public address leads to this box.

The box or `venuebox doctor --outside` fetches a proof from its public address. The request goes
through the same DNS, proxy, tunnel or relay as a guest's request. The proof depends on a random
nonce, so another server cannot replay an earlier proof.
"""

import json
import re
import ssl
from dataclasses import replace
from hmac import compare_digest
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from appliance.core.network import get_start, is_public
from appliance.core.tokens import Keyring
from appliance.database.connection import Reader
from appliance.doctor.check import NGINX, Check
from appliance.environment import Environment
from appliance.scheduler import Job
from appliance.webhooks.client import SystemTrust, Trust

PROOF_PATH = "/.well-known/venuebox"
NONCE = re.compile(r"[0-9a-f]{32}")
NONCE_BYTES = 16
_DEADLINE_SECONDS = 6.0
_FIRST_MS = 60_000  # delay of the first check, because the network may not be up yet
_EVERY_MS = 10 * 60_000
_OK = 200
_BODY_MAX = 1000  # bytes


def is_checked(url: str) -> bool:
    """Whether `url`, the setting `server.app_url`, is an https address on the internet."""
    return urlsplit(url).scheme == "https" and is_public(url)


async def check_outside(
    url: str, keyring: Keyring, nonce: str, trust: Trust | None = None
) -> Check:
    """Fetch this box's proof through its public address `url`, within 6 s.

    `keyring` contains the live environment's keys. `nonce` is random hex text. A warning means that
    the address may still work from outside, because many routers do not let local devices use the
    public address.
    """
    host = urlsplit(url).hostname or ""
    try:
        context = await (trust or SystemTrust())()
        proof = f"{url}{PROOF_PATH}/{nonce}"
        status, body = await get_start(proof, _BODY_MAX, _DEADLINE_SECONDS, tls=context)
    except aiohttp.ClientConnectorDNSError:
        return Check.fail(
            "The name %(host)s has no address.",
            "Ask whoever manages the domain name to point it to the venue's router, proxy or "
            "relay.",
            host=host,
        )
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        return _refuse_certificate(url, error)
    except (aiohttp.ClientError, TimeoutError, OSError):
        return Check.warn(
            "Nothing answers at %(url)s.",
            "Check the router's port forward, the proxy or the relay. Some routers do not let "
            "devices in the venue use the public address. If a phone on mobile data opens it, "
            "nothing is wrong.",
            url=url,
        )
    return _judge(url, status, body, keyring.prove(nonce))


def _judge(url: str, status: int, body: bytes, expected: str) -> Check:
    """Compare the response from `url` with this box's proof (`expected`)."""
    proof = _read(body) if status == _OK else None
    if proof is None:
        return Check.fail(
            "A server that is not this box answers at %(url)s (HTTP status %(status)s).",
            "With status 502, 503 or 504, the proxy or tunnel does not reach the box. Restart it. "
            "With 421, the proxy must pass on the Host header. With another status, the name leads"
            " to a different server.",
            url=url, status=status,
        )  # fmt: skip
    if not compare_digest(str(proof.get("proof")).encode("utf-8", "replace"), expected.encode()):
        return Check.fail(
            "Another box answers at %(url)s.",
            "Switch off the other box, or let the name lead to this one.",
            url=url,
        )
    if proof.get("scheme") != "https":
        return Check.fail(
            "The proxy in front of %(url)s does not say that guests use https, or the box does not "
            "know the proxy.",
            "Name the address of the proxy in %(setting)s, and add this to its configuration: "
            "%(line)s",
            url=url, setting="server.trusted_proxies", line=NGINX,
        )  # fmt: skip
    return Check.ok("The box answers at %(url)s.", url=url)


def _read(body: bytes) -> dict[str, Any] | None:
    """Parse a box's response. Return None if `body` is not from a box."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and "proof" in found else None


def _refuse_certificate(url: str, error: aiohttp.ClientError) -> Check:
    cause = getattr(error, "certificate_error", None) or error.__cause__
    trouble = str(cause or error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        trouble = cause.verify_message
    return Check.fail(
        "Browsers do not accept the certificate at %(url)s: %(trouble)s.",
        "If the box obtains its certificate itself, wait a minute and test again. Otherwise, renew"
        " it where https ends: at the proxy, or on the box (%(command)s).",
        url=url, trouble=trouble.rstrip("."), command="venuebox tls import",
    )  # fmt: skip


class OutsideWatch:
    """Checks the public address every 10 min, and keeps the latest result for the page."""

    def __init__(self, environment: Environment, trust: Trust | None = None) -> None:
        """`environment` must be the live environment."""
        self._environment = environment
        self.latest: Check | None = None
        self._keyring = environment.keyring
        self._database = environment.database
        self._trust = trust or SystemTrust()
        self._checked_at: int | None = None
        self._first = self._database.clock.now() + _FIRST_MS
        self.job = Job("outside check", self._database, self._next_due, self.check)

    @property
    def url(self) -> str:
        """The public address, or "" if there is none to check."""
        url = self._environment.settings.server.app_url
        return url if is_checked(url) else ""

    async def check(self) -> None:
        """Check now, and store the result as `latest`, with the start of a lasting fault."""
        self._checked_at = self._database.clock.now()
        if self.url:
            nonce = self._database.tokens.random_bytes(NONCE_BYTES).hex()
            found = await check_outside(self.url, self._keyring, nonce, self._trust)
            before = self.latest.since if self.latest else None
            since = None if found.status == "ok" else before or self._checked_at
            self.latest = replace(found, name="outside", since=since)

    def _next_due(self, reader: Reader) -> int | None:
        if self._checked_at is None:
            return self._first if self._first <= reader.now + _FIRST_MS else 0
        if not self.url:
            return None
        return 0 if self._checked_at > reader.now else self._checked_at + _EVERY_MS
