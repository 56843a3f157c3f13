"""Checks of the machine: room, memory, clock, time zones, the way out."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from appliance.clock import format_instant
from appliance.data_directory import ENVIRONMENTS
from appliance.doctor.check import Check, fail, warn, well
from appliance.doctor.patient import NotExamined, Patient
from appliance.doctor.words import Instant
from appliance.environment import EnvironmentName
from appliance.errors import Trouble
from appliance.store.examination import find_newest_instant

_MIB = 1 << 20
_ROOM_WARN, _ROOM_FAIL = 1024 * _MIB, 100 * _MIB
_FILES_WARN, _FILES_FAIL = 10_000, 1_000
_MEMORY_WARN, _MEMORY_FAIL = 128 * _MIB, 32 * _MIB
_BACK_IN_TIME = 5 * 60 * 1000
_UNSYNCHRONISED = 5  # TIME_ERROR of adjtimex(2)
_MOROCCO = "Africa/Casablanca"
_KNOWN_DAY = datetime(2026, 11, 20, 12)  # noqa: DTZ001 - the zone is what is asked
_GATEWAY = 0x2


def disk(patient: Patient) -> Check:
    """Room for the evening: warned below 1 GiB, failing below 100 MiB."""
    found = patient.machine.statvfs(patient.directory.root)
    free = found.f_bavail * found.f_frsize
    mib = free // _MIB
    what = "Il reste {mib} Mio sur le disque.", "{mib} MiB are left on the disk."
    remedy = (
        "Effacez ce qui n'est pas à la box, ou agrandissez le volume.",
        "Delete what is not the box's, or enlarge the volume.",
    )
    if free < _ROOM_FAIL:
        return fail("disk", *what, *remedy, mib=mib)
    if free < _ROOM_WARN:
        return warn("disk", *what, *remedy, mib=mib)
    return well("disk", *what, mib=mib)


def inodes(patient: Patient) -> Check:
    """Room for more files, where the volume counts them."""
    found = patient.machine.statvfs(patient.directory.root)
    if not found.f_files:
        raise NotExamined
    left = found.f_favail
    what = "Le volume a place pour {left} fichiers.", "The volume has room for {left} files."
    remedy = (
        "Effacez les nombreux petits fichiers qui remplissent le volume.",
        "Delete the many small files that fill the volume.",
    )
    if left < _FILES_FAIL:
        return fail("inodes", *what, *remedy, left=left)
    if left < _FILES_WARN:
        return warn("inodes", *what, *remedy, left=left)
    return well("inodes", *what, left=left)


def memory(patient: Patient) -> Check:
    """Memory that is free for use."""
    lines = _read(patient.machine.proc / "meminfo").splitlines()
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    if not found:
        raise NotExamined
    free = int(found[0]) * 1024
    mib = free // _MIB
    what = "{mib} Mio de mémoire sont libres.", "{mib} MiB of memory are free."
    remedy = (
        "Arrêtez les autres programmes de cette machine, ou ajoutez de la mémoire.",
        "Stop other programs on this machine, or add memory.",
    )
    if free < _MEMORY_FAIL:
        return fail("memory", *what, *remedy, mib=mib)
    if free < _MEMORY_WARN:
        return warn("memory", *what, *remedy, mib=mib)
    return well("memory", *what, mib=mib)


def time_zones(patient: Patient) -> Check:
    """The tz database knows that Morocco is at UTC+00 since 20 September 2026."""
    zones = patient.zones
    which = f"{zones.version} ({zones.origin})"
    try:
        right = not _offset(zones.zone(_MOROCCO))
    except Trouble:
        right = False
    if not right:
        return fail(
            "time_zones",
            "La base des fuseaux {which} ignore l'heure du Maroc depuis septembre 2026.",
            "The tz database {which} does not know Morocco's time since September 2026.",
            "Installez une version récente de venuebox, ou posez un paquet tzdata récent (.whl) "
            "dans le dossier tz/ des données et redémarrez la box.",
            "Install a recent venuebox, or put a recent tzdata package (.whl) into the folder tz/ "
            "of the data directory and restart the box.",
            which=which,
        )
    return well(
        "time_zones",
        "Base des fuseaux {which} : Casablanca est à UTC+00.",
        "tz database {which}: Casablanca is at UTC+00.",
        which=which,
    )


def clock(patient: Patient) -> Check:
    """The clock is not behind what the box has written, and the machine keeps it right."""
    now = patient.clock.now()
    newest = max(_newest(patient, environment) for environment in ENVIRONMENTS)
    told = Instant(now, format_instant(now))
    remedy = (
        "Réglez l'heure : timedatectl set-ntp true, et vérifiez l'accès à internet.",
        "Set the time: timedatectl set-ntp true, and check the way to the internet.",
    )
    if now < newest - _BACK_IN_TIME:
        return fail(
            "clock",
            "L'horloge dit {told}, et la box a déjà écrit {newest}.",
            "The clock says {told}, and the box has already written {newest}.",
            *remedy,
            told=told,
            newest=Instant(newest, format_instant(newest)),
        )
    state = patient.machine.clock_state()
    if state in {None, _UNSYNCHRONISED}:
        kept = (
            "L'horloge ({told}) n'est pas réglée par le réseau.",
            "The clock ({told}) is not kept right by the network.",
        ) if state else (
            "L'horloge ({told}) est peut-être mal réglée par le réseau.",
            "The clock ({told}) may not be kept right by the network.",
        )  # fmt: skip
        return warn("clock", *kept, *remedy, told=told)
    return well("clock", "L'horloge est réglée par le réseau : {told}.",
                "The clock is kept right by the network: {told}.", told=told)  # fmt: skip


def uplink(patient: Patient) -> Check:
    """A way out of the house, by the routing table alone: nothing is sent."""
    proc = patient.machine.proc
    if not (proc / "net" / "route").exists():
        raise NotExamined
    four = [line.split() for line in _read(proc / "net" / "route").splitlines()[1:]]
    six = [line.split() for line in _read(proc / "net" / "ipv6_route").splitlines()]
    out = any(len(r) > 7 and r[1] == r[7] == "00000000" and int(r[3], 16) & 1 for r in four)
    out = out or any(
        len(r) > 9 and r[0] == "0" * 32 and r[1] == "00" and int(r[8], 16) & _GATEWAY for r in six
    )
    if not out:
        return warn(
            "uplink",
            "Aucun chemin vers internet : webhooks et lettres attendent, la porte continue.",
            "There is no way to the internet: webhooks and letters wait, the door goes on.",
            "Vérifiez le câble, le wifi et la box internet.",
            "Check the cable, the wifi and the router.",
        )
    return well("uplink", "Un chemin vers internet existe.", "There is a way to the internet.")


def _newest(patient: Patient, environment: EnvironmentName) -> int:
    try:
        with patient.rows(environment) as reader:
            return find_newest_instant(reader) or 0
    except NotExamined:
        return 0


def _offset(zone: ZoneInfo) -> float:
    offset = _KNOWN_DAY.replace(tzinfo=zone).utcoffset()
    return offset.total_seconds() if offset is not None else -1


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", errors="replace")
    except OSError:
        return ""
