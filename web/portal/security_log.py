"""`/portal/people/log`: the security log, in sentences (docs/security.md, S23)."""

from collections.abc import Mapping

from aiohttp import web

from appliance.i18n import Language
from appliance.store.connection import Reader
from appliance.store.history import staff_names
from appliance.store.keys import list_keys
from appliance.store.security_log import (
    SecurityEntry,
    find_broken_security_link,
    list_security_entries,
)
from web.portal.answer import find_zone, language_of, moment, portal_page
from web.portal.context import BOX, HOUSE

_PAGE = 100
_ROW = 2**53


async def show_log(request: web.Request) -> web.Response:
    """`GET /portal/people/log`: the newest first; `?environment=test` for that one."""
    box, language = request.app[BOX], language_of(request)
    of_test = request.query.get("environment") == "test"
    database = (box.test if of_test else box.live).database
    asked = request.query.get("before", "")
    before = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 16 else _ROW
    found, broken, keys = await database.read(_read, before)
    zone = await request[HOUSE].database.read(find_zone)
    names = {**await request[HOUSE].database.read(staff_names), **keys}
    more = len(found) > _PAGE
    values: dict[str, object] = {
        "lines": [
            (moment(e.at, zone, language), what_happened(e, names, language),
             who_did(e, names, language))
            for e in found[:_PAGE]
        ],
        "broken": broken,
        "next": found[_PAGE - 1].seq if more else None,
        "of_test": of_test,
        "days": box.settings.retention.security_days,
    }  # fmt: skip
    return portal_page(request, "portal/people/log.html", values)


def _read(reader: Reader, before: int) -> tuple[list[SecurityEntry], int | None, dict[str, str]]:
    return (
        list_security_entries(reader, _PAGE + 1, before=before),
        find_broken_security_link(reader),
        {key.id: key.name for key in list_keys(reader)},
    )


def what_happened(entry: SecurityEntry, names: Mapping[str, str], language: Language) -> str:
    """`Role of Karim: host → manager`."""
    _, detail = language.gettext, entry.detail
    person = names.get(str(detail.get("person", "")), "?")
    name = str(detail.get("name", "?"))
    if entry.what == "role_changed":
        return _("Role of %(person)s: %(before)s → %(after)s", person=person,
                 before=detail.get("before", "?"), after=detail.get("after", "?"))  # fmt: skip
    if entry.what == "sign_in_failed":
        if "person" in detail:
            return _("A wrong password for %(person)s", person=person)
        return _("A sign-in under a name that nobody has")
    if entry.what == "pass_reissued":
        return _("New code for the guest of %(table)s on %(date)s",
                 table=detail.get("table", "?"), date=detail.get("date", "?"))  # fmt: skip
    words = {
        "box_founded": _("The box got its first owner"),
        "signed_in": _("Signed in"),
        "signed_out": _("Signed out"),
        "password_changed": _("Changed the password"),
        "wrong_code": _("The right password, but a wrong code, for %(person)s", person=person),
        "second_step_added": _("Added a second step to the own sign-in"),
        "second_step_removed": _("Second step of %(person)s removed", person=person),
        "recovery_code_used": _("Used a recovery code"),
        "link_used": _("Set a password by a one-time link"),
        "link_made": _("One-time link for %(person)s", person=person),
        "person_invited": _("Invited %(name)s", name=name),
        "person_disabled": _("%(person)s may not sign in any more", person=person),
        "person_enabled": _("%(person)s may sign in again", person=person),
        "unlocked": _("Wrong passwords for %(person)s forgotten", person=person),
        "session_ended": _("Ended a session of %(person)s", person=person),
        "sessions_ended": _("Ended every session of %(person)s", person=person),
        "key_issued": _("API key for %(name)s", name=name),
        "key_revoked": _("API key of %(name)s revoked", name=name),
        "terminal_issued": _("%(name)s became a terminal", name=name),
        "terminal_edited": _("Terminal %(name)s edited", name=name),
        "terminal_revoked": _("Terminal %(name)s revoked", name=name),
        "pairing_offered": _("Pairing code for %(name)s", name=name),
        "endpoint_registered": _("Webhook endpoint registered"),
        "endpoint_activated": _("Webhook endpoint switched on"),
        "endpoint_deactivated": _("Webhook endpoint switched off"),
        "endpoint_events_chosen": _("Events of a webhook endpoint chosen"),
        "endpoint_references_chosen": _("References told to a webhook endpoint chosen"),
        "endpoint_secret_rolled": _("Secret of a webhook endpoint rolled"),
        "endpoint_old_secret_revoked": _("Old secret of a webhook endpoint revoked"),
        "settings_changed": _("Settings changed: %(name)s", name=name),
        "clock_confirmed": _("Said that the clock of the box is right"),
        "restarted": _("Restarted the box"),
        "recovery_kit_shown": _("Was shown the recovery kit"),
        "restored": _("Restored the box from the backup of %(at)s", at=detail.get("made_at", "?")),
        "signing_key_rotated": _("A new key signs guest passes"),
        "door_log_exported": _("Exported the door log of %(date)s", date=detail.get("date", "?")),
        "payment_voided": _("Payment of %(amount)s voided", amount=detail.get("amount", "?")),
        "exported": _("Exported %(name)s", name=name),
    }
    return words.get(entry.what, entry.what)


def who_did(entry: SecurityEntry, names: Mapping[str, str], language: Language) -> str:
    """A name of the house, or who else it was."""
    _ = language.gettext
    kind, _separator, id_ = entry.actor.partition(":")
    if kind == "staff":
        return names.get(id_, _("somebody of the house"))
    if kind == "key" and id_ in names:
        return _("the API key %(name)s", name=names[id_])
    known = {
        "console": _("a command at the box"),
        "nobody": _("somebody unknown"),
        "box": _("the box"),
        "key": _("an API key"),
        "terminal": _("a terminal"),
    }
    return known.get(kind, kind)
