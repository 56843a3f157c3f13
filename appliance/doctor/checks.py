"""The list of checks, and how they are run. A new check is a function and its line here."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from appliance.core.i18n import mark as _
from appliance.doctor import data, machine, partners
from appliance.doctor import machine as service
from appliance.doctor.check import Check, CheckContext, NotExamined, conditions, fail

# A check is named as its function. It raises NotExamined where there is nothing to look at.
CHECKS: tuple[Callable[[CheckContext], Check], ...] = (
    service.box, service.settings,
    data.permissions, data.master_key, data.erasures, data.integrity, data.schema, data.wal,
    data.backups,
    machine.disk, machine.memory, machine.clock, machine.time_zones,
    data.signing_key, machine.uplink, conditions,
    partners.mail, partners.mail_server, partners.endpoints, partners.deliveries,
    service.readers, service.certificate, service.tls_port,
)  # fmt: skip


def examine(
    context: CheckContext, checks: Sequence[Callable[[CheckContext], Check]] = CHECKS
) -> list[Check]:
    """The findings in the order of the list. A check that breaks is a finding too."""
    found = []
    for check in checks:
        try:
            result = check(context)
        except NotExamined:
            continue
        except Exception as error:  # noqa: BLE001 - the others still have something to tell
            result = fail(
                _("This could not be examined (%(kind)s)."),
                _("Look at the other findings; else keep this message for whoever helps you."),
                kind=type(error).__name__,
            )
        found.append(replace(result, name=check.__name__))
    return found
