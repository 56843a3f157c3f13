"""Checks of the machine: disk space, memory, clock, time zones, route to the internet."""

from datetime import datetime, timedelta

from appliance.data_directory import ENVIRONMENTS
from appliance.doctor.check import Check, CheckContext, NotExamined, at_least, fail, ok, utc, warn
from appliance.environment import EnvironmentName
from appliance.errors import Trouble
from appliance.i18n import mark as _
from appliance.store.clock_marks import find_latest_instant

_MIB = 1 << 20
_BACK_IN_TIME = 5 * 60 * 1000
_KNOWN_DAY = datetime(2026, 11, 20, 12)  # noqa: DTZ001 - the zone is what is asked


def disk(context: CheckContext) -> Check:
    """Space for the evening: warned below 1 GiB, failing below 100 MiB."""
    found = context.machine.statvfs(context.directory.root)
    mib = found.f_bavail * found.f_frsize // _MIB
    return at_least(
        mib, 1024, 100,
        _("Free on the disk: %(mib)s MiB."),
        _("Delete what does not belong to the box, or enlarge the volume."),
        mib=mib,
    )  # fmt: skip


def memory(context: CheckContext) -> Check:
    """Memory that is free for use."""
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
    except Trouble:
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
    """The clock is not behind what the box has written, and the network keeps it right."""
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
    """A route to the internet, by the routing table alone: nothing is sent."""
    if context.machine.has_way_out():
        return ok(_("There is a route to the internet."))
    return warn(
        _("There is no route to the internet: webhooks and emails wait, the door works."),
        _("Check the cable, the wifi and the router."),
    )


def _newest(context: CheckContext, environment: EnvironmentName) -> int:
    try:
        with context.rows(environment) as reader:
            return find_latest_instant(reader) or 0
    except NotExamined:
        return 0
