"""What the box itself has noted as wrong just now: its clock, its uplink, its partners."""

from appliance.data_directory import ENVIRONMENTS
from appliance.doctor.check import Check, CheckContext, Sentence, fail, ok, warn
from appliance.i18n import mark as _
from appliance.store.conditions import Condition, list_conditions

# By the names under which they are noted.
MESSAGES = {
    "box_offline": _("the box has no internet, webhooks wait"),
    "clock_held": _("the clock cannot be trusted, webhooks wait"),
    "clock_unconfirmed": _("webhooks are sent with a time that is not confirmed"),
    "clock_leapt": _(
        "the clock was set far ahead or back and nothing confirms it, so nothing expires: if its "
        "date is right, the owner confirms it in the portal"
    ),
    "unwritten_outcomes": _("results of deliveries cannot be written"),
    "endpoint_failing": _("a webhook endpoint does not answer"),
    "endpoint_blocked": _("the address of a webhook endpoint is not allowed"),
    "receiver_clock": _("a partner's clock differs from the box's"),
    "endpoint_switched_off": _("an API key deactivated a webhook endpoint of another key"),
    "no_backup": _("the nightly backup could not be made"),
    "database_damaged": _("a database is damaged"),
    "mail_settings": _("no email is sent before the mail settings are corrected"),
    "mail_unreachable": _("emails wait: the mail server does not answer"),
    "reader_trouble": _("a scanner does not work: %(detail)s"),
    "proxy_unknown": _(
        "requests come from a proxy or tunnel at %(subject)s that is not configured, so everyone "
        "behind it counts as one caller: if it is yours, write %(detail)s under [server] in "
        "settings.toml and restart the box"
    ),
    "proxy_says_nothing": _(
        "the proxy at %(subject)s is configured, but does not say who asks and whether over "
        "https: it has to send X-Forwarded-For and X-Forwarded-Proto (nginx: %(detail)s)"
    ),
}
_OF_ENDPOINTS = ("endpoint_failing", "endpoint_blocked", "receiver_clock", "endpoint_switched_off")


def conditions(context: CheckContext) -> Check:
    """What holds now. Of a box that is off, what it noted about its own process is past."""
    found: list[Condition] = []
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            found += list_conditions(reader)
    if not context.runs:
        found = [condition for condition in found if condition.name in _OF_ENDPOINTS]
    if not found:
        return ok(_("The box reports nothing."))
    is_failing = any(condition.name == "unwritten_outcomes" for condition in found)
    return (fail if is_failing else warn)(
        _("The box reports: %(noted)s."),
        _("See the findings about clock, internet and mail, and the endpoints in the portal."),
        noted=tuple(map(describe, found)),
    )


def describe(condition: Condition) -> Sentence:
    """What was noted. In English the box's own sentence, which says of what and why."""
    message = MESSAGES.get(condition.name, "%(detail)s")
    values = {"detail": condition.detail.rstrip("."), "subject": condition.subject}
    return Sentence(message, values, "" if "%(" in message else values["detail"])
