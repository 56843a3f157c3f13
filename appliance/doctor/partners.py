"""Checks of outgoing traffic: emails to guests, webhooks to partners."""

import asyncio

from appliance.core.data_directory import ENVIRONMENTS
from appliance.core.i18n import mark as _
from appliance.doctor.check import (
    SET,
    Check,
    CheckContext,
    NotExamined,
    fail,
    ok,
    read_delivery_health,
    utc,
    warn,
)
from appliance.email.smtp import find_trouble
from appliance.reservations.emails import SETTINGS_TROUBLE
from appliance.webhooks.endpoints import list_active_endpoints

MAIL_DEADLINE = 5.0
_WEEK = 7 * 24 * 3600 * 1000
_HOUR = 3600 * 1000
_MANY = 5  # failures in a row


def mail(context: CheckContext) -> Check:
    """The mail settings are complete and do not send the password unencrypted."""
    found = context.known_settings().mail
    if not found.host:
        finding = _("There is no mail server: guests get no emails.")
        return warn(finding, SET, setting="mail.host, mail.user, mail.password, mail.sender")
    missing = "mail.sender" if not found.sender else (
        "mail.password" if found.user and not found.password else ""
    )  # fmt: skip
    if missing:
        return fail(_("%(setting)s is missing: no email is sent."), SET, setting=missing)
    if found.security == "none" and found.password:
        setting = "mail.security (starttls, tls)"
        return warn(_("The mail password travels unencrypted."), SET, setting=setting)
    return ok(_("Emails are sent by %(server)s."), server=found.host)


def mail_server(context: CheckContext) -> Check:
    """The mail server accepts the sign-in within 5 s. Runs only with `--online`."""
    found = context.known_settings().mail
    if not context.online or not found.host or not found.sender:
        raise NotExamined
    server = f"{found.host}:{found.port}"
    if trouble := asyncio.run(find_trouble(found, MAIL_DEADLINE)):
        trouble = trouble.removeprefix(SETTINGS_TROUBLE)
        finding = _("%(server)s does not accept our emails: %(trouble)s.")
        remedy = _("Check the mail settings and the connection to the internet.")
        return fail(finding, remedy, server=server, trouble=trouble)
    return ok(_("%(server)s accepts our emails."), server=server)


def endpoints(context: CheckContext) -> Check:
    """No active webhook endpoint is blocked or has failed 5 times in a row."""
    failing, active = [], 0
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            found = list_active_endpoints(reader)
        active += len(found)
        failing += [e for e in found if e.failures_in_a_row >= _MANY or e.last_outcome == "blocked"]
    if failing:
        finding = _("Webhook endpoints that accept nothing (%(count)s): %(names)s.")
        remedy = _("Tell the partner. If the address is blocked, see %(setting)s in settings.toml.")
        names = ", ".join(f"{e.url} ({e.last_outcome})" for e in failing[:3])
        told = {"count": len(failing), "names": names, "setting": "webhooks.allow_networks"}
        return warn(finding, remedy, **told)
    return ok(_("Webhook endpoints: %(count)s, none failing."), count=active)


def deliveries(context: CheckContext) -> Check:
    """No delivery died in the last 7 days, and none has been pending for over an hour."""
    now, dead, pending, oldest = context.clock.now(), 0, 0, None
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            found = read_delivery_health(reader, now - _WEEK)
        dead, pending = dead + found.dead, pending + found.pending
        if found.oldest_pending is not None:
            oldest = min(oldest or found.oldest_pending, found.oldest_pending)
    if dead:
        remedy = _("Solve it with the partner, then replay them in the portal under “Integrations "
                   "and API”.")  # fmt: skip
        return warn(_("Deliveries given up in the last 7 days: %(count)s."), remedy, count=dead)
    if oldest is not None and now - oldest > _HOUR:
        finding = _("Deliveries waiting: %(pending)s, the oldest since %(oldest)s.")
        remedy = _("If the box runs and has internet, the partner does not answer.")
        return warn(finding, remedy, pending=pending, oldest=utc(oldest))
    return ok(_("Deliveries waiting: %(pending)s, none given up."), pending=pending)
