"""Checks of the machine and the service: disk, memory, clock, routes, https, scanners."""

import os
import socket
import ssl
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from appliance.core.data_directory import ENVIRONMENTS
from appliance.core.errors import OperatorError
from appliance.core.i18n import mark as _
from appliance.core.network import is_loopback_host, own_addresses
from appliance.core.settings import ServerSettings
from appliance.core.tokens import EnvironmentName
from appliance.doctor.check import (
    ASK,
    HEALTH_DEADLINE,
    RESTART,
    SET,
    Check,
    CheckContext,
    NotExamined,
    at_least,
    fail,
    list_terminal_names,
    ok,
    utc,
    warn,
)
from appliance.tls.certificates import Names, describe, wanted_names
from appliance.venue.rows import get_venue

_MIB = 1 << 20
_BACK_IN_TIME = 5 * 60 * 1000
_KNOWN_DAY = datetime(2026, 11, 20, 12)  # noqa: DTZ001 - the zone is what is asked


def disk(context: CheckContext) -> Check:
    """Free disk space: warning below 1 GiB, failure below 100 MiB."""
    found = context.machine.statvfs(context.directory.root)
    mib = found.f_bavail * found.f_frsize // _MIB
    return at_least(
        mib, 1024, 100,
        _("Free on the disk: %(mib)s MiB."),
        _("Delete what does not belong to the box, or enlarge the volume."),
        mib=mib,
    )  # fmt: skip


def memory(context: CheckContext) -> Check:
    """Available memory: warning below 128 MiB, failure below 32 MiB."""
    try:
        lines = (context.machine.proc / "meminfo").read_text("ascii").splitlines()
    except OSError:
        raise NotExamined from None
    kib = next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    if kib is None:
        raise NotExamined
    return at_least(
        kib // 1024, 128, 32,
        _("Free memory: %(mib)s MiB."),
        _("Stop other programs on this machine, or add memory."),
        mib=kib // 1024,
    )  # fmt: skip


def time_zones(context: CheckContext) -> Check:
    """The tz database knows that Morocco is at UTC+00 since 20 September 2026."""
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
    """The clock is not behind the latest stored instant, and NTP synchronises it."""
    at = context.clock.now()
    newest = max(_newest(context, environment) for environment in ENVIRONMENTS)
    now, command = utc(at), "timedatectl set-ntp true"
    remedy = _(
        "Check the connection to the internet. If the time stays wrong, ask whoever installed the "
        "box: %(command)s"
    )
    if at < newest - _BACK_IN_TIME:
        finding = _("The clock says %(now)s, but the box has already written %(newest)s.")
        return fail(finding, remedy, now=now, newest=utc(newest), command=command)
    synchronised = context.machine.is_synchronised()
    if synchronised:
        return ok(_("The clock is synchronised by the network: %(now)s."), now=now)
    finding = (
        _("It is not known whether the network synchronises the clock (%(now)s).")
        if synchronised is None
        else _("The clock (%(now)s) is not synchronised by the network.")
    )
    return warn(finding, remedy, now=now, command=command)


def uplink(context: CheckContext) -> Check:
    """A route to the internet exists in the routing table. Sends nothing."""
    if context.machine.has_way_out():
        return ok(_("There is a route to the internet."))
    return warn(
        _("There is no route to the internet: webhooks and emails wait, the door works."),
        _("Check the cable, the wifi and the router."),
    )


_NEWEST = """
    SELECT max(at) FROM (
        SELECT max(at) AS at FROM scan UNION ALL SELECT max(at) FROM history UNION ALL
        SELECT max(at) FROM heartbeat UNION ALL SELECT max(created_at) FROM signing_key)
"""


def _newest(context: CheckContext, environment: EnvironmentName) -> int:
    try:
        with context.rows(environment) as reader:
            return reader.value(_NEWEST) or 0
    except NotExamined:
        return 0


_OK = 200
_WARN_DAYS, _FAIL_DAYS = 21, 3  # the box renews 30 days before the end


def box(context: CheckContext) -> Check:
    """A box serves this directory, and `/health` answers 200 within 2 s."""
    if not context.runs:
        return warn(_("The box is not running."), ASK, command="venuebox serve")
    answers = {}
    for url in _addresses(context):
        answers[url] = context.machine.ask(f"{url}/health")
        if answers[url] == _OK:
            return ok(_("The box is running and answers."))
    if any(answers.values()):
        return fail(
            _("The box is running, but cannot write any more."),
            _("Free space if the disk is full, look at the log of the box, then restart it."),
        )
    finding = _("The box is running, but does not answer at %(where)s.")
    return fail(finding, RESTART, where=", ".join(answers) or "?", setting="server.port")


def settings(context: CheckContext) -> Check:
    """The settings are readable and contain an https address for guests."""
    if isinstance(context.settings, str):
        finding = _("The settings cannot be read: %(trouble)s.")
        remedy = _("Do not restart the box before %(file)s is corrected: it would not start.")
        return fail(finding, remedy, trouble=context.settings, file="settings.toml")
    url = context.settings.server.app_url
    if not url:
        finding = _("No public address is set: guests' links contain a guessed address.")
        return warn(finding, SET, setting="server.app_url")
    if urlsplit(url).scheme == "http" and not is_loopback_host(urlsplit(url).hostname or ""):
        return warn(
            _("%(url)s is not encrypted: phones allow it neither camera nor offline pages."),
            _("Ask whoever installed the box for an https address."),
            url=url,
        )
    return ok(_("Guests reach the box at %(url)s."), url=url)


def readers(context: CheckContext) -> Check:
    """Every configured scanner is plugged in and belongs to an existing terminal."""
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
            missing = ", ".join(sorted(wanted - list_terminal_names(reader)))
        if missing:
            finding = _("There is no terminal called %(names)s (%(environment)s).")
            remedy = _("Create it in the portal under “Door”, or correct settings.toml.")
            return fail(finding, remedy, names=missing, environment=environment)
    return ok(_("Scanners plugged in: %(count)s."), count=len(known))


def certificate(context: CheckContext) -> Check:
    """The certificates do not expire soon, and they cover the box's names."""
    server, found = _look(context)
    imported, covered = found["imported"], _imported_names(found)
    own_days, days = found["daysLeft"], min(found["daysLeft"], (imported or found)["daysLeft"])
    lasting = at_least(
        days, _WARN_DAYS, _FAIL_DAYS, _("Days until the certificate expires: %(days)s."), ASK,
        days=days, command="venuebox tls import" if days < own_days else "venuebox tls renew",
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
        names, command = ", ".join(imported["names"][:5]), "venuebox tls forget"
        return warn(finding, remedy, names=names, host=host, command=command)
    with context.rows("live") as reader:
        wanted = wanted_names(get_venue(reader).slug, server, own_addresses())
    unnamed = {*wanted.dns, *wanted.addresses} - set(found["names"])
    missing = sorted(name for name in unnamed if not covered.cover(name))
    if missing:
        remedy = _("Ask whoever installed the box: %(command)s. If that changes nothing, add "
                   "%(option)s and trust the box again on each phone (%(page)s).")  # fmt: skip
        told = {"command": "venuebox tls renew", "option": "--authority", "page": "/trust"}
        names = ", ".join(missing[:5])
        return warn(_("The certificate is not for %(names)s."), remedy, names=names, **told)
    return lasting


def tls_port(context: CheckContext) -> Check:
    """`server.tls_port` answers over TLS with the stored certificates."""
    server, found = _look(context)
    if not context.runs:
        raise NotExamined
    host = _listening_host(server.host)
    where = f"{host}:{server.tls_port}"
    covered = _imported_names(found)
    expected = {"": found["fingerprint"]}
    for name in [name.replace("*", "www") for name in covered.dns][:1]:
        expected[name] = (found["imported"] if covered.cover(name) else found)["fingerprint"]
    try:
        shown = {name: _ask(host.strip("[]"), server.tls_port, name) for name in expected}
    except OSError:
        finding = _("Nothing answers over https at %(where)s.")
        return fail(finding, RESTART, where=where, setting="server.tls_port")
    if shown != expected:
        finding = _("%(where)s shows another certificate than the box's.")
        return warn(finding, _("Restart the box."), where=where)
    return ok(_("https answers at %(where)s."), where=where)


def _imported_names(found: dict[str, Any]) -> Names:
    return Names(tuple(found["imported"]["names"]) if found["imported"] else (), ())


def _ask(host: str, port: int, name: str) -> str:
    """Connect with SNI `name` ("" for none) and return the certificate's SHA-256 in hex."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # compared by hash
    with (
        socket.create_connection((host, port), HEALTH_DEADLINE) as plain,
        context.wrap_socket(plain, server_hostname=name or None) as secure,
    ):
        return sha256(secure.getpeercert(binary_form=True) or b"").hexdigest()


def _look(context: CheckContext) -> tuple[ServerSettings, dict[str, Any]]:
    """Return settings and certificates. Raises NotExamined if the box does not serve TLS."""
    server = context.known_settings().server
    found = describe(context.directory.root / "tls", context.clock.now())
    if is_loopback_host(server.host) or not server.tls_port or found is None:
        raise NotExamined
    return server, found


def _addresses(context: CheckContext) -> list[str]:
    """List local URLs where the box may listen: last known address first, then the settings."""
    found = []
    remembered = urlsplit(context.directory.remembered_address() or "")
    if remembered.port:
        found.append(f"http://127.0.0.1:{remembered.port}")
        if remembered.hostname in own_addresses():  # it may listen only there
            found.append(f"http://{remembered.netloc}")
    if not isinstance(context.settings, str) and (server := context.settings.server).port:
        found.append(f"http://{_listening_host(server.host)}:{server.port}")
    return list(dict.fromkeys(found))


def _listening_host(host: str) -> str:
    """Return the host for a URL on this machine."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not listened on
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
