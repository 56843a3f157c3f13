"""The checks of outgoing data: emails, webhooks, the mirror in PostgreSQL."""

from collections.abc import Mapping
from typing import Any

from appliance.checks.check import SKEW_WARNING_S, Check, CheckContext, NotExamined, utc
from appliance.clock import DAY_MS, HOUR_MS
from appliance.core.data_directory import ENVIRONMENTS
from appliance.core.i18n import mark as _
from appliance.mirror.changes import count_rows, count_waiting, find_state
from appliance.mirror.server import server_name
from appliance.reservations.email_queue import SETTINGS_TROUBLE
from appliance.webhooks.endpoints import list_active_endpoints

_WEEK = 7 * DAY_MS
# A server that refused one recipient works, so that email does not count.
_WAITING_EMAILS = """
    SELECT created_at, trouble FROM email
    WHERE state = 'waiting' AND (trouble LIKE 'settings: %' OR trouble NOT LIKE '%refused with%')
    ORDER BY created_at LIMIT 1
"""
_MANY = 5  # number of consecutive failures that the check reports
_DELIVERIES = """
    SELECT (SELECT count(*) FROM delivery WHERE state = 'dead' AND finished_at >= :since),
           count(*), min(e.occurred_at)
    FROM delivery d JOIN event e ON e.seq = d.event_seq WHERE d.state = 'pending'
"""
# What keeps the mirror from being filled, as `mirror.trouble` names it: finding and remedy.
TROUBLES: Mapping[str, tuple[str, str]] = {
    "unreachable": (
        _("The mirror %(where)s has not answered since %(since)s. Changes waiting: %(waiting)s."),
        _("Check that the database server runs and that the box reaches it. Nothing is lost: the "
          "box keeps trying."),
    ),
    "busy": (
        _("The mirror %(where)s is too busy since %(since)s. Changes waiting: %(waiting)s."),
        _("Allow more connections on the database server (max_connections, or a pooler), or give "
          "it a faster disk. Nothing is lost: the box keeps trying."),
    ),
    "certificate": (
        _("The mirror %(where)s does not show a certificate that this box trusts."),
        _("Give the server a certificate from a known authority, or name its own authority in "
          "mirror.url with ?sslrootcert=/path/to/authority.pem. Only on a network that you trust: "
          "?sslmode=disable does without TLS."),
    ),
    "refused": (
        _("The mirror %(where)s does not accept the user, the password or the database in "
          "mirror.url."),
        _("Correct mirror.url in settings.toml, then restart the box."),
    ),
    "forbidden": (
        _("The user in mirror.url may not create or change the schema venuebox at %(where)s."),
        _("Ask who runs the database server to allow it: %(command)s"),
    ),
    "full": (
        _("The disk or the memory of the mirror %(where)s is full since %(since)s. Changes "
          "waiting: %(waiting)s."),
        _("Free some space on the database server. Nothing is lost: the box keeps trying."),
    ),
    "read_only": (
        _("The mirror %(where)s can only be read: it is probably a standby."),
        _("Write the address of the primary server in mirror.url, then restart the box."),
    ),
    "schema": (
        _("The schema venuebox at %(where)s is not the one that this box fills: the log names what "
          "differs."),
        _("Use another database, or rename that schema there. The box then creates its own."),
    ),
    "other_box": (
        _("Another box fills the mirror %(where)s under the id of this venue."),
        _("Stop the copy of this box, or delete mirror.url from its settings."),
    ),
    "failed": (
        _("The mirror %(where)s does not take the changes since %(since)s: the log has the code of "
          "the error. Changes waiting: %(waiting)s."),
        _("Look up the code in the manual of the database server, or keep it for the person who "
          "helps you."),
    ),
}  # fmt: skip


def mail(context: CheckContext) -> Check:
    """Check that the mail settings are complete, and that no password is sent unencrypted."""
    found = context.known_settings().mail
    if not found.host:
        return Check.warn(
            "There is no mail server: guests get no emails.",
            "Set %(setting)s in the portal or in settings.toml.",
            setting="mail.host, mail.user, mail.password, mail.sender",
        )
    if found.user and not found.password:
        return Check.fail(
            "The mail password is missing: no email is sent.",
            "Set %(setting)s in the portal or in settings.toml.",
            setting="mail.password",
        )
    if found.security == "none" and found.password:
        return Check.warn(
            "The mail password is sent unencrypted.",
            "Set %(setting)s in the portal or in settings.toml.",
            setting="mail.security (starttls, tls)",
        )
    with context.rows("live") as reader:
        since, trouble = next(iter(reader.rows(_WAITING_EMAILS)), (None, ""))
    if trouble.startswith(SETTINGS_TROUBLE):
        return Check.fail(
            "No email is sent before the mail settings are corrected: %(trouble)s.",
            "Check the mail settings and the internet connection.",
            trouble=trouble.removeprefix(SETTINGS_TROUBLE).rstrip("."),
        ).lasting(since)
    if trouble:
        return Check.warn(
            "Emails wait, because the mail server did not take them: %(trouble)s.",
            "Check the mail settings and the internet connection.",
            trouble=trouble.rstrip("."),
        ).lasting(since)
    return Check.ok("Emails are sent through %(server)s.", server=found.host)


def endpoints(context: CheckContext) -> Check:
    """Check that no active webhook endpoint is blocked or has failed 5 times in a row."""
    failing, active, skewed = [], 0, []
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            found = list_active_endpoints(reader)
        active += len(found)
        skewed += [e for e in found if abs(e.clock_skew_s or 0) > SKEW_WARNING_S]
        failing += [e for e in found if e.failures_in_a_row >= _MANY or e.last_outcome == "blocked"]
    if failing:
        names = [f"{e.url} ({e.last_outcome})" for e in failing[:3]]
        return Check.warn(
            "Webhook endpoints that accept nothing (%(count)s): %(names)s.",
            "Tell the partner. If the address is blocked, whoever looks after the machine can "
            "allow it with %(setting)s.",
            count=len(failing), names=names, setting="webhooks.allow_networks",
        ).lasting(min(e.last_success_at or e.created_at for e in failing))  # fmt: skip
    if skewed:
        return Check.warn(
            "Clocks of webhook receivers that differ from the box’s: %(names)s.",
            "Tell the partner. From 300 s on, a receiver refuses every signature.",
            names=[f"{e.url} ({e.clock_skew_s} s)" for e in skewed[:3]],
        )
    return Check.ok("Webhook endpoints: %(count)s, none failing.", count=active)


def deliveries(context: CheckContext) -> Check:
    """Check for deliveries abandoned in the last 7 days or waiting for more than an hour."""
    now = context.clock.now()
    counts: list[Any] = []
    for environment in ENVIRONMENTS:
        with context.rows(environment) as reader:
            counts += reader.rows(_DELIVERIES, {"since": now - _WEEK})
    dead, pending = sum(row[0] for row in counts), sum(row[1] for row in counts)
    oldest = min((row[2] for row in counts if row[1]), default=None)
    if dead:
        return Check.warn(
            "Deliveries given up in the last 7 days: %(count)s.",
            "Resolve it with the partner, then replay them in the portal under “Integrations and "
            "API”.",
            count=dead,
        )
    if oldest is not None and now - oldest > HOUR_MS:
        return Check.warn(
            "Deliveries waiting: %(pending)s, the oldest since %(oldest)s.",
            "If the box is running and has internet, the partner’s server does not answer.",
            pending=pending, oldest=utc(oldest),
        ).lasting(oldest)  # fmt: skip
    return Check.ok("Deliveries waiting: %(pending)s, none given up.", pending=pending)


def mirror(context: CheckContext) -> Check:
    """Check that the mirror is filled. The worst result is a warning."""
    url = context.known_settings().mirror.url
    if not url:
        raise NotExamined
    values: dict[str, object] = {"where": server_name(url)}
    with context.rows("live") as reader:
        state = find_state(reader)
        if state is None:
            return Check.warn(
                "The box does not fill the mirror %(where)s yet.", "Restart the box.", **values
            )
        values["waiting"] = count_waiting(reader)
        if state.trouble:
            values["since"] = utc(state.trouble_since or 0)
            values["command"] = "GRANT CREATE ON DATABASE …"
            return Check.warn(*TROUBLES[state.trouble], **values)
        if state.position.copying:
            values |= {"copied": state.position.copied, "total": count_rows(reader)}
            return Check.ok("The mirror %(where)s has %(copied)s of %(total)s rows.", **values)
    return Check.ok("The mirror %(where)s is filled. Changes on their way: %(waiting)s.", **values)
