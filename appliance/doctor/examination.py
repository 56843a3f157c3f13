"""The list of checks, and how they are run. A new check is a function and its line here."""

from collections.abc import Callable, Sequence

from appliance.doctor.backups import backups
from appliance.doctor.certificate import certificate, tls_port
from appliance.doctor.check import Check, say
from appliance.doctor.conditions import conditions
from appliance.doctor.databases import integrity, schema, signing_key, sqlite, wal
from appliance.doctor.files import erasures, leftovers, master_key, permissions
from appliance.doctor.machine import clock, disk, inodes, memory, time_zones, uplink
from appliance.doctor.partners import deliveries, endpoints, mail, mail_server
from appliance.doctor.patient import NotExamined, Patient
from appliance.doctor.service import box, readers, settings

# A check is named as its function. It raises NotExamined where there is nothing to look at.
CHECKS: tuple[Callable[[Patient], Check], ...] = (
    box,
    settings,
    permissions,
    master_key,
    leftovers,
    erasures,
    sqlite,
    integrity,
    schema,
    wal,
    backups,
    disk,
    inodes,
    memory,
    clock,
    time_zones,
    signing_key,
    uplink,
    conditions,
    mail,
    mail_server,
    endpoints,
    deliveries,
    readers,
    certificate,
    tls_port,
)


def examine(patient: Patient, checks: Sequence[Callable[[Patient], Check]] = CHECKS) -> list[Check]:
    """The findings in the order of the list. A check that breaks is a finding too."""
    found = []
    for check in checks:
        try:
            found.append(check(patient))
        except NotExamined:
            continue
        except Exception as error:  # noqa: BLE001 - the others still have something to tell
            found.append(_broken(check.__name__, error))
    return found


def _broken(name: str, error: Exception) -> Check:
    kind = type(error).__name__
    return Check(
        name,
        "fail",
        say("Impossible à examiner ({kind}).", "It could not be examined ({kind}).", kind=kind),
        say(
            "Regardez les constats ci-dessus ; sinon, gardez ce message pour qui vous aide.",
            "Look at the findings above; else keep this message for whoever helps you.",
        ),
    )
