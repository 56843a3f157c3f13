"""The checks of the ways in and out: uplink, certificates, ACME, relay, public address.

To check its public address, the box or `venuebox doctor --outside` fetches a proof from it. The
request goes through the same DNS, proxy, tunnel or relay as a guest's request. The proof depends on
a random nonce, so another server cannot replay an earlier proof.
"""

import asyncio
import json
import os
import re
import ssl
from dataclasses import replace
from hmac import compare_digest
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from appliance.checks.check import (
    NGINX,
    Check,
    CheckContext,
    NotExamined,
    Status,
    at_least,
    describe_acme,
    describe_seen,
    list_observations,
    utc,
)
from appliance.clock import DAY_MS
from appliance.core.i18n import mark as _
from appliance.core.network import get_start, is_public, own_addresses, serves_tls
from appliance.core.settings import ServerSettings
from appliance.core.tokens import Keyring
from appliance.database.connection import Reader
from appliance.environment import Environment
from appliance.relay import relay_file
from appliance.scheduler import Job
from appliance.tls.acme import read_plan
from appliance.tls.authority import Names, wanted_names
from appliance.tls.certificates import AUTHORITY, IMPORTED, OBTAINED, describe
from appliance.venue.model import get_venue
from appliance.webhooks.client import SystemTrust, Trust

_WARN_DAYS, _FAIL_DAYS = 21, 3  # the box renews its certificate 30 days before it expires
PROOF_PATH = "/.well-known/venuebox"
NONCE = re.compile(r"[0-9a-f]{32}")
NONCE_BYTES = 16
_DEADLINE_SECONDS = 6.0
_FIRST_MS = 60_000  # delay of the first check, because the network may not be up yet
_EVERY_MS = 10 * 60_000
_OK = 200
_BODY_MAX = 1000  # in bytes


def uplink(context: CheckContext) -> Check:
    """Check that the routing table has a route out of the local network. Sends no packet."""
    return (
        Check.ok("A router leads out of this network. The internet itself was not tried.")
        if context.machine.has_way_out()
        else Check.warn(
            "The internet is not reachable: webhooks and emails wait, the door works.",
            "Check the cable, the Wi-Fi and the router.",
        )
    )


def certificate(context: CheckContext) -> Check:
    """Check that the certificates do not expire soon and that they cover the box's names."""
    server, found = _look(context)
    imported, covered = found["imported"], _names_of_others(found)
    folder = context.directory.root / "tls"
    days, remedy = found["daysLeft"], _("Restart the box, which renews its certificate.")
    if imported and imported["daysLeft"] < days:
        days, remedy = imported["daysLeft"], _("Import its successor: %(command)s")
    # If ACME is on, the check `acme` checks the certificate that was obtained with ACME.
    obtained = None if context.known_settings().acme.directory else found["obtained"]
    if obtained and obtained["daysLeft"] < days:
        days, remedy = obtained["daysLeft"], _("Delete %(file)s and restart the box.")
    lasting = at_least(
        days,
        _WARN_DAYS,
        _FAIL_DAYS,
        _(
            "Days until the certificate expires: %(days)s. SHA-256 of the box: %(own)s, of its "
            "authority: %(authority)s."
        ),
        remedy,
        days=days, command="venuebox tls import", own=found["fingerprint"],
        authority=found["authority"], file=folder / OBTAINED,
    )  # fmt: skip
    if lasting.status != "ok":
        return lasting
    url = urlsplit(server.app_url)
    host = url.hostname or ""
    if imported and url.scheme == "https" and not covered.cover(host):
        return Check.warn(
            "The imported certificate is for %(names)s, but guests reach the box at %(host)s.",
            "Import a certificate for that address (%(command)s), or delete %(file)s and restart "
            "the box.",
            names=imported["names"][:5], host=host, command="venuebox tls import",
            file=folder / IMPORTED,
        )  # fmt: skip
    with context.rows("live") as reader:
        wanted = wanted_names(get_venue(reader).slug, server, own_addresses())
    unnamed = {*wanted.dns, *wanted.addresses} - set(found["names"])
    missing = sorted(name for name in unnamed if not covered.cover(name))
    if missing:
        return Check.warn(
            "The certificate is not valid for %(names)s.",
            "Restart the box. If that changes nothing, delete %(file)s, restart the box, and trust "
            "it again on each phone (%(page)s).",
            names=missing[:5], file=folder / AUTHORITY, page="/trust",
        )  # fmt: skip
    return lasting


def acme(context: CheckContext) -> Check:
    """Check the public certificate and the last attempt to renew it, if ACME is on."""
    settings, now = context.known_settings(), context.clock.now()
    if not settings.acme.directory:
        raise NotExamined
    server = settings.server
    plan = read_plan(context.directory.root / "tls", settings)
    if not (plan.name and serves_tls(server.host, server.tls_port)):
        return Check.warn(
            "ACME is on, but the box serves no public name over https itself.",
            "Set %(setting)s in the portal or in settings.toml.",
            setting="server.app_url, server.tls_port",
        )
    if plan.rests:
        return Check.ok(
            "The imported certificate is used for %(name)s, so ACME does nothing.", name=plan.name
        )
    when, state = utc(max(plan.due(now) or 0, now)), plan.state
    if state.reason:
        is_lasting = plan.ends_at > now + _FAIL_DAYS * DAY_MS
        problems = (describe_acme(state),)
        status: Status = "warn" if is_lasting else "fail"
        return Check.of(
            status,
            "The public certificate was not renewed: %(problem)s.",
            "The box tries again by itself at %(when)s. Ask whoever installed the box to correct "
            "the cause. Then %(command)s tries at once.",
            when=when, problem=problems, command="venuebox tls obtain",
        ).lasting(state.ended_at)  # fmt: skip
    if plan.ends_at > now:
        return Check.ok(
            "The public certificate for %(name)s ends on %(end)s. Renewal: %(when)s. Account: "
            "%(account)s.",
            name=plan.name, end=utc(plan.ends_at), when=when, account=plan.state.account,
        )  # fmt: skip
    return Check.warn(
        "There is no public certificate for %(name)s yet.",
        "The box tries again by itself at %(when)s. Ask whoever installed the box to correct the "
        "cause. Then %(command)s tries at once.",
        name=plan.name, when=when, command="venuebox tls obtain",
    )  # fmt: skip


def relay(context: CheckContext) -> Check:
    """Check that the running box reaches the relay that it has joined."""
    with context.rows("live") as reader:
        seen = list_observations(reader, "relay_")
    if not seen:
        if not relay_file(context.directory.root).exists():
            raise NotExamined
        return Check.ok("The relay is reached.")
    return Check.fail(
        "%(seen)s.",
        "See “How guests and partners reach you” in the portal.",
        seen=tuple(describe_seen(each) for each in seen),
    ).lasting(seen[0].since)


def _names_of_others(found: dict[str, Any]) -> Names:
    return Names(_names_of(found["imported"]).dns + _names_of(found["obtained"]).dns, ())


def _names_of(described: dict[str, Any] | None) -> Names:
    return Names(tuple(described["names"]) if described else (), ())


def _look(context: CheckContext) -> tuple[ServerSettings, dict[str, Any]]:
    """Return (server settings, description of the certificates).

    Raises NotExamined if the box does not serve https.
    """
    server = context.known_settings().server
    found = describe(context.directory.root / "tls", context.clock.now())
    if not serves_tls(server.host, server.tls_port) or found is None:
        raise NotExamined
    return server, found


def outside(context: CheckContext) -> Check:
    """Check that the public address leads to this box. Runs only with `--outside`."""
    if isinstance(context.outside, Check):
        return context.outside
    url = context.known_settings().server.app_url
    if not context.outside or not is_checked(url):
        raise NotExamined
    nonce = os.urandom(NONCE_BYTES).hex()
    return asyncio.run(check_outside(url, Keyring(context.key(), "live"), nonce))


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
