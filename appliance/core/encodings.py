"""Recognise the encoding of an uploaded text file.

Spreadsheet programs save "CSV" in the code page of their system. The bytes do not name it, so the
candidates are compared by how well their text reads as French or Arabic.
"""

import codecs
import re
import string
import unicodedata

from appliance.core.i18n import mark as _

# What the pages call each encoding.
ENCODINGS = {
    "utf-8-sig": "UTF-8",
    "utf-16": "UTF-16",
    "cp1252": _("Windows, Latin letters"),
    "cp1256": _("Windows, Arabic letters"),
    "mac_roman": _("Mac, Latin letters"),
    "mac_arabic": _("Mac, Arabic letters"),
    "cp850": _("DOS, Latin letters"),
    "cp720": _("DOS, Arabic letters"),
}
_CODE_PAGES = tuple(ENCODINGS)[2:]
_FRENCH = frozenset("àâçèéêëîïôœùû")
_WORD = re.compile(r"[^\W\d_]+")
_LETTERS = frozenset(string.ascii_letters)
_COMMON = frozenset("ابةتدرسعفلمنهويق")  # the most frequent letters of Arabic
# Signs that occur next to a word, and signs that occur only in Arabic text
_SIGNS, _ARABIC_SIGNS = frozenset("«»“”‘—…°№€"), frozenset("،؛؟")
_HARMLESS = frozenset("’–·\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}")


def decode_file(raw: bytes) -> tuple[str, str]:
    """Return the text of a file, its lines ended by line feeds, and the encoding in ENCODINGS.

    Raises ValueError if the file is not text.
    """
    encoding = _find_encoding(raw)
    text = raw.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    if any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in text):
        raise ValueError("not a text file")
    return text, encoding


def _find_encoding(raw: bytes) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return max(_CODE_PAGES, key=lambda code_page: _rate(raw, code_page))
    return "utf-8-sig"


def _rate(raw: bytes, code_page: str) -> float:
    """Return how well the bytes read as French or Arabic in this code page. More is better."""
    try:
        text = raw.decode(code_page)
    except UnicodeDecodeError:
        return float("-inf")
    mixed = {n for word in _WORD.finditer(text) if _is_mixed(word[0]) for n in range(*word.span())}
    around = zip(f" {text}", text, f"{text[1:]} ", strict=False)
    return sum(
        -2 if n in mixed else _rate_letter(*letters)
        for n, (byte, letters) in enumerate(zip(raw, around, strict=True))
        if byte > 0x7F
    )


def _is_mixed(word: str) -> bool:
    """Whether capital and small letters are mixed unlike in any word, for example `CAFê`."""
    return word not in {word.lower(), word.upper(), word.title()}


def _rate_letter(before: str, letter: str, after: str) -> float:
    if _is_arabic(letter):
        return _rate_arabic(before, letter, after)
    if letter.lower() in _FRENCH:
        return _rate_french(before, letter, after)
    if letter in _ARABIC_SIGNS:
        return 0 if _is_arabic(before) else -2
    if letter in _SIGNS:
        return -2 if before.isalpha() and after.isalpha() else 0
    if letter in _HARMLESS:
        return 0
    return -1 if letter.isalpha() and not letter.isascii() else -2


def _rate_arabic(before: str, letter: str, after: str) -> float:
    if any(c.isalpha() and not _is_arabic(c) for c in (before, after)):
        return -2
    if not _is_arabic(before) and not _is_arabic(after):
        return -1
    return (1 if letter in _COMMON else 0.5) + (before + letter == "ال")


def _rate_french(before: str, letter: str, after: str) -> float:
    if _is_arabic(before) or _is_arabic(after):
        return -2
    return 1 if letter == "à" or {before, after} & _LETTERS else 0


def _is_arabic(letter: str) -> bool:
    """Whether this is a letter of Arabic as written in Morocco, or an Arabic digit."""
    return "ء" <= letter <= "غ" or "ف" <= letter <= "ي" or "٠" <= letter <= "٩" or letter in "گڤپچ"
