"""What the portal says after something was done: a name in the address, a sentence on the page."""

from collections.abc import Mapping

from appliance.i18n import Language
from appliance.i18n import mark as _

_NOTES: Mapping[str, str] = {
    "saved": _("Saved."),
    "key-revoked": _("The key is revoked: its next call is refused."),
    "endpoint-activated": _("The endpoint is active: it hears of what happens from now on."),
    "endpoint-deactivated": _("The endpoint is deactivated: nothing more is sent there."),
    "endpoint-events-chosen": _("The endpoint hears of these events from now on."),
    "old-secret-revoked": _("Only the present secret signs from now on."),
    "test-sent": _("A test event is on its way."),
    "replayed": _("The delivery is on its way again."),
    "replayed-anyway": _("The delivery was about to be sent anyway: it goes out once."),
    "tables-added": _("The tables are added."),
    "terminal-revoked": _("Its access is withdrawn: its next request is refused."),
    "conflict-seen": _("Noted as dealt with."),
    "key-rotated": _("A new key signs from now on."),
    "entered": _("The reservation is made: the table is held."),
    "entered-letter": _("The reservation is made, and the letter to the guest is on its way."),
    "entered-letter-waits": _(
        "The reservation is made. The letter waits: the box has no mail server yet."
    ),
    "saved-for-later": _("Saved. It is in force from the next start of the box."),
    "session-ended": _("Signed out there."),
    "second-step-removed": _("The second step is removed: the password is enough."),
    "clock-confirmed": _("The clock of the box is right: what is due by it is done from now on."),
    "signed-out": _("You are signed out."),
    "password-changed": _("The password is changed. Please sign in with the new one."),
}


def note_text(name: str | None, language: Language) -> str | None:
    """The sentence of that name, or None: nothing that stands in an address is ever shown."""
    message = _NOTES.get(name or "")
    return None if message is None else language.gettext(message)
