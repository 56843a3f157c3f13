"""What the portal says after something was done: a name in the address, a sentence on the page."""

from collections.abc import Mapping

from web.languages import Language


def _(message: str) -> str:
    """Mark a sentence for the catalogues; it is translated where it is shown."""
    return message


_NOTES: Mapping[str, str] = {
    "saved": _("Saved."),
    "entered": _("The reservation is made: the table is held."),
    "entered-letter": _("The reservation is made, and the letter to the guest is on its way."),
    "signed-out": _("You are signed out."),
    "password-changed": _("The password is changed. Please sign in with the new one."),
}


def note_text(name: str | None, language: Language) -> str | None:
    """The sentence of that name, or None: nothing that stands in an address is ever shown."""
    message = _NOTES.get(name or "")
    return None if message is None else language.gettext(message)
