"""Checks of the machine, the service, email and webhooks, and the list of all checks.

To add a check, write a function with its sentences in English, and add it to CHECKS. Checks
of the data directory are in data.py.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from appliance.box import find_heartbeat
from appliance.clock import DAY_MS, FAR_AHEAD_MS, HOUR_MS
from appliance.core.data_directory import ENVIRONMENTS
from appliance.core.errors import OperatorError
from appliance.core.i18n import mark as _
from appliance.core.network import in_url, is_loopback_host, own_addresses, serves_tls
from appliance.core.settings import ServerSettings
from appliance.core.tokens import Keyring
from appliance.doctor import data
from appliance.doctor.check import (
    READER_TROUBLE,
    SKEW_WARNING_S,
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
from appliance.doctor.mirror import mirror
from appliance.doctor.outside import NONCE_BYTES, check_outside, is_checked
from appliance.reservations.email_queue import SETTINGS_TROUBLE
from appliance.tls.acme import read_plan
from appliance.tls.authority import Names, wanted_names
from appliance.tls.certificates import AUTHORITY, IMPORTED, OBTAINED, describe
from appliance.venue.model import get_venue
from appliance.webhooks.endpoints import list_active_endpoints

_MIB = 1 << 20
_BACK_IN_TIME = 5 * 60 * 1000
_KNOWN_DAY = datetime(2026, 11, 20, 12)  # noqa: DTZ001 - the check adds the zone
_OK = 200
_WARN_DAYS, _FAIL_DAYS = 21, 3  # the box renews its certificate 30 days before it expires
_WEEK = 7 * DAY_MS
# A server that refused one recipient works, so that email does not count.
_WAITING_EMAILS = """
    SELECT created_at, trouble FROM email
    WHERE state = 'waiting' AND (trouble LIKE 'settings: %' OR trouble NOT LIKE '%refused with%')
    ORDER BY created_at LIMIT 1
"""
_MANY = 5  # number of consecutive failures that the check reports
_DELIVERIES = """
    SELECT (SELECT count(*) FROM delivery WHERE state = 'dead' AND finished_at >= :since),
           count(*), min(e.occurred_at)
    FROM delivery d JOIN event e ON e.seq = d.event_seq WHERE d.state = 'pending'
"""


def disk(context: CheckContext) -> Check:
    """Check that the disk is writable. Warn below 1 GiB of free space, and fail below 100 MiB."""
    found = context.machine.statvfs(context.directory.root)
    if found.f_flag & os.ST_RDONLY:
        return Check.fail(
            "The disk is read-only, so nothing can be recorded.",
            "Linux does this when a disk fails. Copy the data directory to another disk, then "
            "restart the machine. If it happens again, replace the disk.",
        )
    mib = found.f_bavail * found.f_frsize // _MIB
    return at_least(
        mib,
        1024,
        100,
        "Free on the disk: %(mib)s MiB.",
        "Delete what does not belong to the box, or use a larger drive.",
        mib=mib,
    )


def time_zones(context: CheckContext) -> Check:
    """Check that the tz database has Morocco at UTC+00 from 20 September 2026."""
    zones = context.zones
    which = f"{zones.version} ({zones.origin})"
    try:
        offset = _KNOWN_DAY.replace(tzinfo=zones.zone("Africa/Casablanca")).utcoffset()
    except OperatorError:
        offset = None
    is_current = offset == timedelta(0)
    return (
        Check.ok("Time zone rules %(which)s: Casablanca is at UTC+00.", which=which)
        if is_current
        else Check.fail(
            "The time zone rules %(which)s do not know Morocco's time since September 2026.",
            "Install a recent version of venuebox, or update the package tzdata of the machine and "
            "restart the box.",
            which=which,
        )
    )


def clock(context: CheckContext) -> Check:
    """Check that the clock is synchronised by NTP, or at least near the newest stored instant.

    It may be up to 5 min earlier and 40 days later.
    """
    at, newest = context.clock.now(), None
    if context.machine.is_synchronised():
        return Check.ok("The clock is synchronised by the network: %(now)s.", now=utc(at))
    with suppress(NotExamined), context.rows("live") as reader:
        newest = find_heartbeat(reader)
    if newest is not None and at < newest - _BACK_IN_TIME:
        return Check.fail(
            "The clock shows %(now)s, but the box already holds data from %(newest)s: it counts on"
            " from there.",
            "If the clock is right, the owner confirms it in the portal on the page “The box”. If "
            "not, check the internet connection, or ask the person who installed the box: "
            "%(command)s",
            now=utc(at), newest=utc(newest), command="timedatectl set-ntp true",
        )  # fmt: skip
    if newest is not None and at > newest + FAR_AHEAD_MS:
        return Check.fail(
            "The clock shows %(now)s, but the newest data in the box is from %(newest)s: nothing "
            "expires and no guest data is erased.",
            "If the clock is right, the owner confirms it in the portal on the page “The box”. If "
            "not, check the internet connection, or ask the person who installed the box: "
            "%(command)s",
            now=utc(at), newest=utc(newest), command="timedatectl set-ntp true",
        )  # fmt: skip
    return Check.warn(
        "The clock (%(now)s) is not synchronised by the network.",
        "Check the internet connection. If the time stays wrong, ask the person who installed the "
        "box: %(command)s",
        now=utc(at), command="timedatectl set-ntp true",
    )  # fmt: skip


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


def box(context: CheckContext) -> Check:
    """Check that a box serves this directory and that `/health` returns 200 within 2 s."""
    if not context.runs:
        is_service = context.machine.unit.exists()
        command = "systemctl start venuebox" if is_service else "venuebox serve"
        return Check.warn(
            "The box is not running.",
            "Ask the person who installed the box: %(command)s",
            command=command,
        )
    answers = {}
    for url in _addresses(context):
        answers[url] = context.machine.ask(f"{url}/health")
        if answers[url] == _OK:
            return Check.ok("The box is running and answers.")
    if any(answers.values()):
        return Check.fail(
            "The box is running, but can no longer write.",
            "Free space if the disk is full, check the log of the box, then restart it.",
        )
    return Check.fail(
        "The box is running, but does not answer at %(where)s.",
        "Restart the box. If that changes nothing, check %(setting)s in settings.toml.",
        where=list(answers) or "?", setting="server.port",
    )  # fmt: skip


def settings(context: CheckContext) -> Check:
    """Check that the settings are readable and contain an https address for guests."""
    if isinstance(context.settings, str):
        return Check.fail(
            "The settings cannot be read: %(trouble)s.",
            "Do not restart the box before %(file)s is corrected: it would not start.",
            trouble=context.settings.rstrip("."), file="settings.toml",
        )  # fmt: skip
    url = context.settings.server.app_url
    if not url:
        return Check.warn(
            "No public address is set: guests' links contain a guessed address.",
            "Set %(setting)s in the portal or in settings.toml.",
            setting="server.app_url",
        )
    if urlsplit(url).scheme == "http" and not is_loopback_host(urlsplit(url).hostname or ""):
        return Check.warn(
            "%(url)s is not encrypted: phones allow neither the camera nor offline pages.",
            "Ask the person who installed the box for an https address.",
            url=url,
        )
    return Check.ok("Guests reach the box at %(url)s.", url=url)


def readers(context: CheckContext) -> Check:
    """Check that every configured scanner works and belongs to an existing terminal."""
    known = context.known_settings().readers
    if not known:
        raise NotExamined
    for scanner in known:
        if scanner.kind != "tcp" and not os.access(scanner.device, os.R_OK):
            return Check.fail(
                "The scanner %(place)s is not plugged in, or cannot be read.",
                "Plug it in. If it is, let the box read it (groups %(groups)s).",
                place=scanner.place, groups="dialout, input",
            )  # fmt: skip
    for environment in ENVIRONMENTS:
        wanted = {r.terminal for r in known if r.environment == environment}
        with context.rows(environment) as reader:
            rows = reader.rows("SELECT id, name FROM terminal WHERE revoked_at IS NULL")
            missing = sorted(wanted.difference(*rows))
        if missing:
            return Check.fail(
                "There is no terminal called %(names)s (%(environment)s).",
                "Create it in the portal under “Door”, or correct settings.toml.",
                names=missing, environment=environment,
            )  # fmt: skip
    with context.rows("live") as reader:
        seen = list_observations(reader, READER_TROUBLE)
    if seen:
        return Check.fail(
            "The scanner %(place)s does not work: %(trouble)s.",
            "Unplug it and plug it in again, or check its settings.",
            place=seen[0].subject, trouble=seen[0].detail.rstrip("."),
        ).lasting(seen[0].since)  # fmt: skip
    return Check.ok("Scanners plugged in: %(count)s.", count=len(known))


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
        return Check.ok("The relay is reached, if the box has joined one.")
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


def _addresses(context: CheckContext) -> list[str]:
    """List local URLs at which the box may answer: the last known URLs, then the configured URL."""
    found = []
    remembered = urlsplit(context.directory.remembered_address() or "")
    if remembered.port:
        found.append(f"http://127.0.0.1:{remembered.port}")
        if remembered.hostname in own_addresses():  # in case the box listens only on this address
            found.append(f"http://{remembered.netloc}")
    if not isinstance(context.settings, str) and (server := context.settings.server).port:
        found.append(f"http://{_listening_host(server.host)}:{server.port}")
    return list(dict.fromkeys(found))


def _listening_host(host: str) -> str:
    """Return the host for a URL that reaches the box from this machine."""
    return "127.0.0.1" if host in {"0.0.0.0", "::"} else in_url(host)  # noqa: S104 - only compared


def mail(context: CheckContext) -> Check:
    """Check that the mail settings are complete, and that no password is sent unencrypted."""
    found = context.known_settings().mail
    if not found.host:
        return Check.warn(
            "There is no mail server: guests get no emails.",
            "Set %(setting)s in the portal or in settings.toml.",
            setting="mail.host, mail.user, mail.password, mail.sender",
        )
    if found.user and not found.password:
        return Check.fail(
            "The mail password is missing: no email is sent.",
            "Set %(setting)s in the portal or in settings.toml.",
            setting="mail.password",
        )
    if found.security == "none" and found.password:
        return Check.warn(
            "The mail password is sent unencrypted.",
            "Set %(setting)s in the portal or in settings.toml.",
            setting="mail.security (starttls, tls)",
        )
    with context.rows("live") as reader:
        since, trouble = next(iter(reader.rows(_WAITING_EMAILS)), (None, ""))
    if trouble.startswith(SETTINGS_TROUBLE):
        return Check.fail(
            "No email is sent before the mail settings are corrected: %(trouble)s.",
            "Check the mail settings and the internet connection.",
            trouble=trouble.removeprefix(SETTINGS_TROUBLE).rstrip("."),
        ).lasting(since)
    if trouble:
        return Check.warn(
            "Emails wait, because the mail server did not take them: %(trouble)s.",
            "Check the mail settings and the internet connection.",
            trouble=trouble.rstrip("."),
        ).lasting(since)
    return Check.ok("Emails are sent through %(server)s.", server=found.host)


def outside(context: CheckContext) -> Check:
    """Check that the public address leads to this box. Runs only with `--outside`."""
    if isinstance(context.outside, Check):
        return context.outside
    url = context.known_settings().server.app_url
    if not context.outside or not is_checked(url):
        raise NotExamined
    nonce = os.urandom(NONCE_BYTES).hex()
    return asyncio.run(check_outside(url, Keyring(context.key(), "live"), nonce))


def endpoints(context: CheckContext) -> Check:
    """Check that no active webhook endpoint is blocked or has failed 5 times in a row."""
    failing, active, skewed = [], 0, []
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            found = list_active_endpoints(reader)
        active += len(found)
        skewed += [e for e in found if abs(e.clock_skew_s or 0) > SKEW_WARNING_S]
        failing += [e for e in found if e.failures_in_a_row >= _MANY or e.last_outcome == "blocked"]
    if failing:
        names = [f"{e.url} ({e.last_outcome})" for e in failing[:3]]
        return Check.warn(
            "Webhook endpoints that accept nothing (%(count)s): %(names)s.",
            "Tell the partner. If the address is blocked, whoever looks after the machine can "
            "allow it with %(setting)s.",
            count=len(failing), names=names, setting="webhooks.allow_networks",
        ).lasting(min(e.last_success_at or e.created_at for e in failing))  # fmt: skip
    if skewed:
        return Check.warn(
            "Clocks of webhook receivers that differ from the box’s: %(names)s.",
            "Tell the partner. From 300 s on, a receiver refuses every signature.",
            names=[f"{e.url} ({e.clock_skew_s} s)" for e in skewed[:3]],
        )
    return Check.ok("Webhook endpoints: %(count)s, none failing.", count=active)


def deliveries(context: CheckContext) -> Check:
    """Check for deliveries abandoned in the last 7 days or waiting for more than an hour."""
    now = context.clock.now()
    counts: list[Any] = []
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            counts += reader.rows(_DELIVERIES, {"since": now - _WEEK})
    dead, pending = sum(row[0] for row in counts), sum(row[1] for row in counts)
    oldest = min((row[2] for row in counts if row[1]), default=None)
    if dead:
        return Check.warn(
            "Deliveries given up in the last 7 days: %(count)s.",
            "Resolve it with the partner, then replay them in the portal under “Integrations and "
            "API”.",
            count=dead,
        )
    if oldest is not None and now - oldest > HOUR_MS:
        return Check.warn(
            "Deliveries waiting: %(pending)s, the oldest since %(oldest)s.",
            "If the box is running and has internet, the partner’s server does not answer.",
            pending=pending, oldest=utc(oldest),
        ).lasting(oldest)  # fmt: skip
    return Check.ok("Deliveries waiting: %(pending)s, none given up.", pending=pending)


# Each check is named after its function. A check that does not apply raises NotExamined.
CHECKS: tuple[Callable[[CheckContext], Check], ...] = (
    box, settings,
    data.permissions, data.master_key, data.integrity, data.schema,
    data.backups, data.backup_target, mirror,
    disk, clock, time_zones,
    data.signing_key, uplink,
    mail, outside, relay, endpoints, deliveries,
    readers, certificate, acme,
)  # fmt: skip


def examine(context: CheckContext) -> list[Check]:
    """Run all checks and return their results in order.

    A check that raises an unexpected exception counts as failed.
    """
    found = []
    for check in CHECKS:
        try:
            result = check(context)
        except NotExamined:
            continue
        except Exception as error:  # noqa: BLE001 - the other checks still run
            result = Check.fail(
                "This could not be checked (%(kind)s).",
                "Check the other findings, or keep this message for the person who helps you.",
                kind=type(error).__name__,
            )
        found.append(replace(result, name=check.__name__))
    return found
