"""The check of the mirror in PostgreSQL."""

from collections.abc import Mapping

from appliance.core.i18n import mark as _
from appliance.doctor.check import Check, CheckContext, NotExamined, utc
from appliance.mirror.changes import count_rows, count_waiting, find_state
from appliance.mirror.server import server_name

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


def mirror(context: CheckContext) -> Check:
    """Check that the mirror is filled. It never fails: no evening depends on it."""
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
