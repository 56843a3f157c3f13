"""The recovery kit: what the owner prints and keeps outside of the house."""

from html import escape

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
_STYLE = (
    "body{font:11pt/1.45 system-ui,sans-serif;max-width:44em;margin:1.5em auto;padding:0 1em;"
    "color:#000;background:#fff}"
    "h1{font-size:15pt;margin:0 0 .3em}h2{font-size:11pt;margin:.8em 0 .2em}p,ol{margin:.3em 0}"
    ".key{display:flex;gap:1.2em;align-items:center;border:2px solid #000;border-radius:12px;"
    "padding:1em;margin:0 0 1em;flex-wrap:wrap;justify-content:center}"
    ".key svg{width:4.5cm;height:auto}"
    ".key code{font-size:13pt;line-height:1.9;word-spacing:.2em}"
    "section{border-top:1px solid #888;padding:.8em 0;break-inside:avoid}"
    "@page{margin:12mm}@media print{body{margin:0 auto}}"
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
    languages, rows = load_languages().all(), "<br>".join(key_rows(key))
    parts = "".join(
        f'<section lang="{each.code}" dir="{each.direction}"><h2>{each.plain(_TITLE)}</h2>'
        f"<p>{escape(each.plain(_WARNING))}</p><ol>"
        + "".join(f"<li>{escape(each.plain(step))}</li>" for step in _STEPS)
        + "</ol></section>"
        for each in languages
    )
    names = " · ".join(f'<span lang="{each.code}">{each.plain(_KEY)}</span>' for each in languages)
    return (
        '<!doctype html><html lang="fr"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>venuebox · {escape(venue)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>venuebox · {escape(venue)}</h1>"
        f'<div class="key">{qr_svg(key.text)}<div><strong>{names}</strong><br>'
        f'<code dir="ltr">{rows}</code></div></div>{parts}</main></body></html>'
    )


def key_rows(key: RecoveryKey) -> list[str]:
    """The key as it is read aloud: two rows of seven groups."""
    groups = key.text.split("-")
    return [" ".join(groups[:7]), " ".join(groups[7:])]
