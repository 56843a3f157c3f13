"""The list of checks and their runner. To add a check, write a function and list it here."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from appliance.core.i18n import mark as _
from appliance.doctor import data, machine, partners
from appliance.doctor.check import Check, CheckContext, NotExamined, conditions, fail

# The name of a check is that of its function. It raises NotExamined if it does not apply.
CHECKS: tuple[Callable[[CheckContext], Check], ...] = (
    machine.box, machine.settings,
    data.permissions, data.master_key, data.erasures, data.integrity, data.schema, data.wal,
    data.backups,
    machine.disk, machine.memory, machine.clock, machine.time_zones,
    data.signing_key, machine.uplink, conditions,
    partners.mail, partners.mail_server, partners.endpoints, partners.deliveries,
    machine.readers, machine.certificate, machine.tls_port,
)  # fmt: skip


def examine(
    context: CheckContext, checks: Sequence[Callable[[CheckContext], Check]] = CHECKS
) -> list[Check]:
    """Run the checks and return their results in order. A check that raises counts as failed."""
    found = []
    for check in checks:
        try:
            result = check(context)
        except NotExamined:
            continue
        except Exception as error:  # noqa: BLE001 - the other checks still run
            result = fail(
                _("This could not be examined (%(kind)s)."),
                _("Look at the other findings; else keep this message for whoever helps you."),
                kind=type(error).__name__,
            )
        found.append(replace(result, name=check.__name__))
    return found
