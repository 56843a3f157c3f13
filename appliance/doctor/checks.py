"""Checks of the machine, the service, email and webhooks, and the list of all checks.

To add a check, write a function and add it to CHECKS. Checks of the data directory are in data.py.
"""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from appliance.clock import DAY_MS, HOUR_MS
from appliance.core.data_directory import ENVIRONMENTS
from appliance.core.errors import OperatorError
from appliance.core.i18n import mark as _
from appliance.core.network import is_loopback_host, own_addresses, serves_tls
from appliance.core.settings import ServerSettings
from appliance.core.tokens import Keyring
from appliance.doctor import data
from appliance.doctor.check import (
    ASK,
    HEALTH_DEADLINE,
    RESTART,
    SET,
    Check,
    CheckContext,
    NotExamined,
    at_least,
    conditions,
    fail,
    ok,
    utc,
    warn,
)
from appliance.doctor.check import describe as describe_alert
from appliance.doctor.outside import NONCE_BYTES, check_outside, is_checked
from appliance.email.smtp import find_trouble
from appliance.reservations.email_queue import SETTINGS_TROUBLE
from appliance.tls.acme import alert_of, read_plan
from appliance.tls.authority import Names, wanted_names
from appliance.tls.certificates import describe
from appliance.venue.rows import get_venue
from appliance.webhooks.endpoints import list_active_endpoints

_MIB = 1 << 20
_BACK_IN_TIME = 5 * 60 * 1000
_KNOWN_DAY = datetime(2026, 11, 20, 12)  # noqa: DTZ001 - the check adds the zone
_OK = 200
_WARN_DAYS, _FAIL_DAYS = 21, 3  # the box renews its certificate 30 days before it expires
MAIL_DEADLINE = 5.0
_WEEK = 7 * DAY_MS
_MANY = 5  # number of consecutive failures that the check reports
_NEWEST = """
    SELECT max(at) FROM (
        SELECT max(at) AS at FROM scan UNION ALL SELECT max(at) FROM history UNION ALL
        SELECT max(at) FROM heartbeat UNION ALL SELECT max(created_at) FROM signing_key)
"""
_DELIVERIES = """
    SELECT (SELECT count(*) FROM delivery WHERE state = 'dead' AND finished_at >= :since),
           count(*), min(e.occurred_at)
    FROM delivery d JOIN event e ON e.seq = d.event_seq WHERE d.state = 'pending'
"""


def disk(context: CheckContext) -> Check:
    """Check the free disk space. Warn below 1 GiB, and fail below 100 MiB."""
    found = context.machine.statvfs(context.directory.root)
    mib = found.f_bavail * found.f_frsize // _MIB
    remedy = _("Delete what does not belong to the box, or use a larger drive.")
    return at_least(mib, 1024, 100, _("Free on the disk: %(mib)s MiB."), remedy, mib=mib)


def memory(context: CheckContext) -> Check:
    """Check the available memory. Warn below 128 MiB, and fail below 32 MiB."""
    try:
        text = (context.machine.proc / "meminfo").read_text("ascii")
    except OSError:
        raise NotExamined from None
    found = re.search(r"^MemAvailable: *(\d+) kB$", text, re.MULTILINE)
    if found is None:
        raise NotExamined
    mib = int(found[1]) // 1024
    remedy = _("Stop other programs on this machine, or add memory.")
    return at_least(mib, 128, 32, _("Free memory: %(mib)s MiB."), remedy, mib=mib)


def time_zones(context: CheckContext) -> Check:
    """Check that the tz database has Morocco at UTC+00 from 20 September 2026."""
    zones = context.zones
    which = f"{zones.version} ({zones.origin})"
    try:
        offset = _KNOWN_DAY.replace(tzinfo=zones.zone("Africa/Casablanca")).utcoffset()
    except OperatorError:
        offset = None
    if offset != timedelta(0):
        finding = _(
            "The time zone rules %(which)s do not know Morocco's time since September 2026."
        )
        remedy = _("Install a recent version of venuebox, or put a recent tzdata package into the "
                   "folder tz of the data directory and restart the box.")  # fmt: skip
        return fail(finding, remedy, which=which)
    return ok(_("Time zone rules %(which)s: Casablanca is at UTC+00."), which=which)


def clock(context: CheckContext) -> Check:
    """Check that the clock is synchronised by NTP and not earlier than the latest stored time.

    A difference of up to 5 min from the latest stored time is allowed.
    """
    at, newest = context.clock.now(), 0
    for environment in ENVIRONMENTS:
        with suppress(NotExamined), context.rows(environment) as reader:
            newest = max(newest, reader.value(_NEWEST) or 0)
    now, command = utc(at), "timedatectl set-ntp true"
    remedy = _(
        "Check the internet connection. If the time stays wrong, ask the person who installed the "
        "box: %(command)s"
    )
    if at < newest - _BACK_IN_TIME:
        finding = _("The clock shows %(now)s, but the box already holds data from %(newest)s.")
        return fail(finding, remedy, now=now, newest=utc(newest), command=command)
    synchronised = context.machine.is_synchronised()
    if synchronised:
        return ok(_("The clock is synchronised by the network: %(now)s."), now=now)
    finding = (
        _("It is not known whether the clock (%(now)s) is synchronised by the network.")
        if synchronised is None
        else _("The clock (%(now)s) is not synchronised by the network.")
    )
    return warn(finding, remedy, now=now, command=command)


def uplink(context: CheckContext) -> Check:
    """Check that the routing table has a route out of the local network. Sends no packet."""
    if context.machine.has_way_out():
        return ok(_("A router leads out of this network. The internet itself was not tried."))
    return warn(
        _("The internet is not reachable: webhooks and emails wait, the door works."),
        _("Check the cable, the Wi-Fi and the router."),
    )


def box(context: CheckContext) -> Check:
    """Check that a box serves this directory and that `/health` returns 200 within 2 s."""
    if not context.runs:
        return warn(_("The box is not running."), ASK, command="venuebox serve")
    answers = {}
    for url in _addresses(context):
        answers[url] = context.machine.ask(f"{url}/health")
        if answers[url] == _OK:
            return ok(_("The box is running and answers."))
    if any(answers.values()):
        return fail(
            _("The box is running, but can no longer write."),
            _("Free space if the disk is full, check the log of the box, then restart it."),
        )
    finding = _("The box is running, but does not answer at %(where)s.")
    return fail(finding, RESTART, where=list(answers) or "?", setting="server.port")


def settings(context: CheckContext) -> Check:
    """Check that the settings are readable and contain an https address for guests."""
    if isinstance(context.settings, str):
        finding = _("The settings cannot be read: %(trouble)s.")
        remedy = _("Do not restart the box before %(file)s is corrected: it would not start.")
        return fail(finding, remedy, trouble=context.settings.rstrip("."), file="settings.toml")
    url = context.settings.server.app_url
    if not url:
        finding = _("No public address is set: guests' links contain a guessed address.")
        return warn(finding, SET, setting="server.app_url")
    if urlsplit(url).scheme == "http" and not is_loopback_host(urlsplit(url).hostname or ""):
        return warn(
            _("%(url)s is not encrypted: phones allow neither the camera nor offline pages."),
            _("Ask the person who installed the box for an https address."),
            url=url,
        )
    return ok(_("Guests reach the box at %(url)s."), url=url)


def readers(context: CheckContext) -> Check:
    """Check that every configured scanner is plugged in and belongs to an existing terminal."""
    known = context.known_settings().readers
    if not known:
        raise NotExamined
    for scanner in known:
        if scanner.kind != "tcp" and not os.access(scanner.device, os.R_OK):
            finding = _("The scanner %(place)s is not plugged in, or cannot be read.")
            remedy = _("Plug it in. If it is, let the box read it (groups %(groups)s).")
            return fail(finding, remedy, place=scanner.place, groups="dialout, input")
    for environment in ENVIRONMENTS:
        wanted = {r.terminal for r in known if r.environment == environment}
        with context.rows(environment) as reader:
            rows = reader.rows("SELECT id, name FROM terminal WHERE revoked_at IS NULL")
            missing = sorted(wanted.difference(*rows))
        if missing:
            finding = _("There is no terminal called %(names)s (%(environment)s).")
            remedy = _("Create it in the portal under “Door”, or correct settings.toml.")
            return fail(finding, remedy, names=missing, environment=environment)
    return ok(_("Scanners plugged in: %(count)s."), count=len(known))


def certificate(context: CheckContext) -> Check:
    """Check that the certificates do not expire soon and that they cover the box's names."""
    server, found = _look(context)
    imported, covered = found["imported"], _names_of_others(found)
    days, command = found["daysLeft"], "venuebox tls renew"
    if imported and imported["daysLeft"] < days:
        days, command = imported["daysLeft"], "venuebox tls import"
    # If ACME is on, the check `acme` checks the certificate that was obtained with ACME.
    obtained = None if context.known_settings().acme.directory else found["obtained"]
    if obtained and obtained["daysLeft"] < days:
        days, command = obtained["daysLeft"], "venuebox tls forget"
    lasting = at_least(
        days, _WARN_DAYS, _FAIL_DAYS, _("Days until the certificate expires: %(days)s."), ASK,
        days=days, command=command,
    )  # fmt: skip
    if lasting.status != "ok":
        return lasting
    url = urlsplit(server.app_url)
    host = url.hostname or ""
    if imported and url.scheme == "https" and not covered.cover(host):
        finding = _(
            "The imported certificate is for %(names)s, but guests reach the box at %(host)s."
        )
        remedy = _("Import a certificate for that address, or remove this one: %(command)s")
        names, command = imported["names"][:5], "venuebox tls forget"
        return warn(finding, remedy, names=names, host=host, command=command)
    with context.rows("live") as reader:
        wanted = wanted_names(get_venue(reader).slug, server, own_addresses())
    unnamed = {*wanted.dns, *wanted.addresses} - set(found["names"])
    missing = sorted(name for name in unnamed if not covered.cover(name))
    if missing:
        remedy = _("Ask the person who installed the box: %(command)s. If that changes nothing, "
                   "add %(option)s and trust the box again on each phone (%(page)s).")  # fmt: skip
        return warn(
            _("The certificate is not valid for %(names)s."), remedy, names=missing[:5],
            command="venuebox tls renew", option="--authority", page="/trust",
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
        finding = _("ACME is on, but the box serves no public name over https itself.")
        return warn(finding, SET, setting="server.app_url, server.tls_port")
    if plan.rests:
        finding = _("The imported certificate is used for %(name)s, so ACME does nothing.")
        return ok(finding, name=plan.name)
    when, problem = utc(max(plan.due(now) or 0, now)), alert_of(plan.state)
    if plan.ends_at > now and not problem:
        finding = _("The public certificate for %(name)s ends on %(end)s. Renewal: %(when)s.")
        return ok(finding, name=plan.name, end=utc(plan.ends_at), when=when)
    remedy = _("The box tries again by itself at %(when)s. Ask whoever installed the box to "
               "correct the cause. Then %(command)s tries at once.")  # fmt: skip
    values = {"name": plan.name, "when": when, "command": "venuebox tls obtain"}
    if problem:
        finding = _("The public certificate was not renewed: %(problem)s.")
        is_lasting = plan.ends_at > now + _FAIL_DAYS * DAY_MS
        problems = (describe_alert(problem),)
        return (warn if is_lasting else fail)(finding, remedy, **values, problem=problems)
    return warn(_("There is no public certificate for %(name)s yet."), remedy, **values)


def tls_port(context: CheckContext) -> Check:
    """Check that the box serves the stored certificates on `server.tls_port`."""
    server, found = _look(context)
    if not context.runs:
        raise NotExamined
    host = _listening_host(server.host)
    where = f"{host}:{server.tls_port}"
    expected = {"": found["fingerprint"]}
    # If both certificates contain a name, the imported certificate is used for it.
    for kind in ("obtained", "imported"):
        names = _names_of(found[kind])
        for name in [name.replace("*", "www") for name in names.dns][:1]:
            expected[name] = (found[kind] if names.cover(name) else found)["fingerprint"]
    try:
        shown = {name: _ask(host.strip("[]"), server.tls_port, name) for name in expected}
    except OSError:
        finding = _("Nothing answers over https at %(where)s.")
        return fail(finding, RESTART, where=where, setting="server.tls_port")
    if shown != expected:
        finding = _("%(where)s presents a certificate that is not the box’s.")
        return warn(finding, _("Restart the box."), where=where)
    return ok(_("https answers at %(where)s."), where=where)


def _names_of_others(found: dict[str, Any]) -> Names:
    return Names(_names_of(found["imported"]).dns + _names_of(found["obtained"]).dns, ())


def _names_of(described: dict[str, Any] | None) -> Names:
    return Names(tuple(described["names"]) if described else (), ())


def _ask(host: str, port: int, name: str) -> str:
    """Connect with SNI `name` ("" for none) and return the certificate's SHA-256 in hex."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The caller compares the certificate's hash instead.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection((host, port), HEALTH_DEADLINE) as plain,
        context.wrap_socket(plain, server_hostname=name or None) as secure,
    ):
        return sha256(secure.getpeercert(binary_form=True) or b"").hexdigest()


def _look(context: CheckContext) -> tuple[ServerSettings, dict[str, Any]]:
    """Return (server settings, description of the certificates).

    Raises NotExamined if the box does not serve https.
    """
    server = context.known_settings().server
    found = describe(context.directory.root / "tls", context.clock.now())
    if is_loopback_host(server.host) or not server.tls_port or found is None:
        raise NotExamined
    return server, found


def _addresses(context: CheckContext) -> list[str]:
    """List local URLs at which the box may answer: the last known URLs, then the configured URL."""
    found = []
    remembered = urlsplit(context.directory.remembered_address() or "")
    if remembered.port:
        found.append(f"http://127.0.0.1:{remembered.port}")
        if remembered.hostname in own_addresses():  # in case it listens only there
            found.append(f"http://{remembered.netloc}")
    if not isinstance(context.settings, str) and (server := context.settings.server).port:
        found.append(f"http://{_listening_host(server.host)}:{server.port}")
    return list(dict.fromkeys(found))


def _listening_host(host: str) -> str:
    """Return the host for a URL that reaches the box from this machine."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - only compared
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def mail(context: CheckContext) -> Check:
    """Check that the mail settings are complete and do not send the password unencrypted."""
    found = context.known_settings().mail
    if not found.host:
        finding = _("There is no mail server: guests get no emails.")
        return warn(finding, SET, setting="mail.host, mail.user, mail.password, mail.sender")
    missing = "" if found.password or not found.user else "mail.password"
    missing = missing if found.sender else "mail.sender"
    if missing:
        return fail(_("%(setting)s is missing: no email is sent."), SET, setting=missing)
    if found.security == "none" and found.password:
        setting = "mail.security (starttls, tls)"
        return warn(_("The mail password is sent unencrypted."), SET, setting=setting)
    return ok(_("Emails are sent through %(server)s."), server=found.host)


def mail_server(context: CheckContext) -> Check:
    """Check that the mail server accepts the sign-in within 5 s. Runs only with `--online`."""
    found = context.known_settings().mail
    if not context.online or not found.host or not found.sender:
        raise NotExamined
    server = f"{found.host}:{found.port}"
    if trouble := asyncio.run(find_trouble(found, MAIL_DEADLINE)):
        trouble = trouble.removeprefix(SETTINGS_TROUBLE)
        finding = _("%(server)s does not accept our emails: %(trouble)s.")
        remedy = _("Check the mail settings and the internet connection.")
        return fail(finding, remedy, server=server, trouble=trouble)
    return ok(_("%(server)s accepts our emails."), server=server)


def outside(context: CheckContext) -> Check:
    """Check that the public address leads to this box. Runs only with `--outside`."""
    url = context.known_settings().server.app_url
    if not context.outside or not is_checked(url):
        raise NotExamined
    nonce = os.urandom(NONCE_BYTES).hex()
    return asyncio.run(check_outside(url, Keyring(context.key(), "live"), nonce))


def endpoints(context: CheckContext) -> Check:
    """Check that no active webhook endpoint is blocked or has failed 5 times in a row."""
    failing, active = [], 0
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            found = list_active_endpoints(reader)
        active += len(found)
        failing += [e for e in found if e.failures_in_a_row >= _MANY or e.last_outcome == "blocked"]
    if failing:
        finding = _("Webhook endpoints that accept nothing (%(count)s): %(names)s.")
        remedy = _("Tell the partner. If the address is blocked, see %(setting)s in settings.toml.")
        names = [f"{e.url} ({e.last_outcome})" for e in failing[:3]]
        setting = "webhooks.allow_networks"
        return warn(finding, remedy, count=len(failing), names=names, setting=setting)
    return ok(_("Webhook endpoints: %(count)s, none failing."), count=active)


def deliveries(context: CheckContext) -> Check:
    """Check that no delivery was given up in the last 7 days or has waited for over an hour."""
    now = context.clock.now()
    counts: list[Any] = []
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            counts += reader.rows(_DELIVERIES, {"since": now - _WEEK})
    dead, pending = sum(row[0] for row in counts), sum(row[1] for row in counts)
    oldest = min((row[2] for row in counts if row[1]), default=None)
    if dead:
        remedy = _("Resolve it with the partner, then replay them in the portal under "
                   "“Integrations and API”.")  # fmt: skip
        return warn(_("Deliveries given up in the last 7 days: %(count)s."), remedy, count=dead)
    if oldest is not None and now - oldest > HOUR_MS:
        finding = _("Deliveries waiting: %(pending)s, the oldest since %(oldest)s.")
        remedy = _("If the box is running and has internet, the partner’s server does not answer.")
        return warn(finding, remedy, pending=pending, oldest=utc(oldest))
    return ok(_("Deliveries waiting: %(pending)s, none given up."), pending=pending)


# Each check is named after its function. A check that does not apply raises NotExamined.
CHECKS: tuple[Callable[[CheckContext], Check], ...] = (
    box, settings,
    data.permissions, data.master_key, data.erasures, data.integrity, data.schema, data.wal,
    data.backups, data.backup_target,
    disk, memory, clock, time_zones,
    data.signing_key, uplink, conditions,
    mail, mail_server, outside, endpoints, deliveries,
    readers, certificate, acme, tls_port,
)  # fmt: skip


def examine(
    context: CheckContext, checks: Sequence[Callable[[CheckContext], Check]] = CHECKS
) -> list[Check]:
    """Run the checks and return their results in order.

    A check that raises an unexpected exception counts as failed.
    """
    found = []
    for check in checks:
        try:
            result = check(context)
        except NotExamined:
            continue
        except Exception as error:  # noqa: BLE001 - the other checks still run
            result = fail(
                _("This could not be checked (%(kind)s)."),
                _("Check the other findings, or keep this message for the person who helps you."),
                kind=type(error).__name__,
            )
        found.append(replace(result, name=check.__name__))
    return found
