"""The checks of the machine and of the running box: disk, clock, settings, scanners."""

import os
from contextlib import suppress
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from appliance.box import find_heartbeat
from appliance.checks.check import (
    READER_TROUBLE,
    Check,
    CheckContext,
    NotExamined,
    at_least,
    list_observations,
    utc,
)
from appliance.clock import FAR_AHEAD_MS
from appliance.core.data_directory import ENVIRONMENTS
from appliance.core.errors import OperatorError
from appliance.core.network import in_url, is_loopback_host, own_addresses

_MIB = 1 << 20
_BACK_IN_TIME = 5 * 60 * 1000
_KNOWN_DAY = datetime(2026, 11, 20, 12)  # noqa: DTZ001 - the check adds the zone
_OK = 200


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

    It may be at most 5 min before that instant, or 40 days after it.
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
