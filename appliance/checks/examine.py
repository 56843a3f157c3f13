"""The list of all checks. Portal, `venuebox doctor`, `/metrics` and log show the results.

To add a check, write a function with its sentences in English, and add it to CHECKS.
"""

from collections.abc import Callable
from dataclasses import replace

from appliance.checks import data, machine, network, outgoing
from appliance.checks.check import Check, CheckContext, NotExamined

# Each check is named after its function. A check that does not apply raises NotExamined.
CHECKS: tuple[Callable[[CheckContext], Check], ...] = (
    machine.box, machine.settings,
    data.permissions, data.master_key, data.integrity, data.schema,
    data.backups, data.backup_target, outgoing.mirror,
    machine.disk, machine.clock, machine.time_zones,
    data.signing_key, network.uplink,
    outgoing.mail, network.outside, network.relay, outgoing.endpoints, outgoing.deliveries,
    machine.readers, network.certificate, network.acme,
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
