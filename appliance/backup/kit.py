"""The recovery kit: what the owner prints and keeps outside of the house."""

from html import escape

from appliance.backup.recovery_key import RecoveryKey
from appliance.model.qr import qr_blocks, qr_svg

_STEPS = {
    "fr": (
        "Kit de secours",
        (
            "Gardez cette feuille hors de la maison, jamais avec les sauvegardes : qui a les deux "
            "a tout ce que la box sait de vos clients."
        ),
        "Clé de secours",
        (
            "Prenez une machine neuve avec venuebox et branchez le volume des sauvegardes.",
            "Choisissez la sauvegarde la plus récente : son nom finit par .venuebox-backup.",
            "Tapez : venuebox restore FICHIER --data DOSSIER, puis la clé ci-dessus.",
            "Tapez : venuebox serve --data DOSSIER. Les codes QR déjà envoyés restent valables.",
        ),
    ),
    "en": (
        "Recovery kit",
        (
            "Keep this sheet outside of the house, never with the backups: who has both has all "
            "that the box knows about your guests."
        ),
        "Recovery key",
        (
            "Take a new machine with venuebox, and plug in the volume with the backups.",
            "Choose the latest backup: its name ends with .venuebox-backup.",
            "Type: venuebox restore FILE --data DIRECTORY, and then the key above.",
            "Type: venuebox serve --data DIRECTORY. QR codes already sent stay valid.",
        ),
    ),
    "ar": (
        "بطاقة الاسترجاع",
        (
            "احفظ هذه الورقة خارج المكان، ولا تضعها أبدًا مع النسخ الاحتياطية: من يملك الاثنتين "
            "يملك كل ما يعرفه الجهاز عن ضيوفك."
        ),
        "مفتاح الاسترجاع",
        (
            "خذ جهازًا جديدًا عليه venuebox ووصّل به وحدة النسخ الاحتياطية.",
            "اختر أحدث نسخة: ينتهي اسمها بـ venuebox-backup.",
            "اكتب: venuebox restore FILE --data DIRECTORY، ثم المفتاح أعلاه.",
            "اكتب: venuebox serve --data DIRECTORY. رموز QR المرسلة تبقى صالحة.",
        ),
    ),
}
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
    title, warning, name, steps = _STEPS[language]
    numbered = "\n".join(f"  {number}. {step}" for number, step in enumerate(steps, 1))
    rows = "\n".join(f"    {row}" for row in key_rows(key))
    return (
        f"{title} · {venue}\n\n{warning}\n\n{name}\n{rows}\n\n{qr_blocks(key.text)}\n\n{numbered}"
    )


def kit_html(key: RecoveryKey, venue: str) -> str:
    """A page to print, in the three languages. It stands alone and asks nobody for anything."""
    rows = "<br>".join(key_rows(key))
    parts = []
    for language, (title, warning, _, steps) in _STEPS.items():
        direction = "rtl" if language == "ar" else "ltr"
        listed = "".join(f"<li>{escape(step)}</li>" for step in steps)
        parts.append(
            f'<section lang="{language}" dir="{direction}"><h2>{title}</h2>'
            f"<p>{escape(warning)}</p><ol>{listed}</ol></section>"
        )
    names = " · ".join(
        f'<span lang="{language}">{name}</span>' for language, (_, _, name, _) in _STEPS.items()
    )
    return (
        '<!doctype html><html lang="fr"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>venuebox · {escape(venue)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>venuebox · {escape(venue)}</h1>"
        f'<div class="key">{qr_svg(key.text)}<div><strong>{names}</strong><br>'
        f'<code dir="ltr">{rows}</code></div></div>'
        f"{''.join(parts)}</main></body></html>"
    )


def key_rows(key: RecoveryKey) -> list[str]:
    """The key as it is read aloud: two rows of seven groups."""
    groups = key.text.split("-")
    return [" ".join(groups[:7]), " ".join(groups[7:])]
