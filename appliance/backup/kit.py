"""The recovery kit: what the owner prints and keeps outside of the house."""

from importlib import resources

import jinja2

from appliance.backup.recovery_key import RecoveryKey
from appliance.i18n import load_languages
from appliance.i18n import mark as _
from appliance.model.qr import qr_blocks, qr_svg

_TITLE, _KEY = _("Recovery kit"), _("Recovery key")
_WARNING = _(
    "Keep this sheet outside of the house, never with the backups: who has both has all that the "
    "box knows about your guests."
)
_STEPS = (
    _("Take a new machine with venuebox, and plug in the volume with the backups."),
    _("Choose the latest backup: its name ends with .venuebox-backup."),
    _("Type: venuebox restore FILE --data DIRECTORY, and then the key above."),
    _("Type: venuebox serve --data DIRECTORY. QR codes already sent stay valid."),
)


def kit_text(key: RecoveryKey, venue: str, language: str) -> str:
    """For a console: the key in rows, a QR code, and what to do with them."""
    say = load_languages().get(language).plain
    numbered = "\n".join(f"  {number}. {say(step)}" for number, step in enumerate(_STEPS, 1))
    rows = "\n".join(f"    {row}" for row in key_rows(key))
    return (
        f"{say(_TITLE)} · {venue}\n\n{say(_WARNING)}\n\n{say(_KEY)}\n{rows}\n\n"
        f"{qr_blocks(key.text)}\n\n{numbered}"
    )


def kit_html(key: RecoveryKey, venue: str) -> str:
    """A page to print, in the three languages. It stands alone and asks nobody for anything."""
    page = resources.files("appliance.backup").joinpath("kit.html").read_text("utf-8")
    return jinja2.Environment(autoescape=True).from_string(page).render(
        venue=venue, languages=load_languages().all(), rows=key_rows(key),
        code=qr_svg(key.text), title=_TITLE, key=_KEY, warning=_WARNING, steps=_STEPS,
    )  # fmt: skip


def key_rows(key: RecoveryKey) -> list[str]:
    """The key as it is read aloud: two rows of seven groups."""
    groups = key.text.split("-")
    return [" ".join(groups[:7]), " ".join(groups[7:])]
