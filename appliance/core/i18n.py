"""Language negotiation, message catalogues, and formatting of dates and file sizes.

The source code contains the messages in English. The translations are in `catalogues/<code>.po`
and are read at start.
"""

import gettext
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, lru_cache
from importlib import resources
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from babel import Locale
from babel.core import get_global
from babel.dates import format_date, format_skeleton
from babel.lists import format_list
from babel.units import format_unit

if TYPE_CHECKING:  # slow to import, and most commands do not need it
    from aiohttp import web

# A field of an entry, such as msgstr[1], and the strings of which it is made up.
_FIELD = re.compile(r'^(msg\S+) ((?:".*"\s*)+)', re.MULTILINE)
_SPACE = re.compile(r" (?=[:;!?»])|(?<=«) ")
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
# The region determines the date format: British English writes 21 Nov, and Moroccan Arabic uses its
# own month names and the digits 0 to 9.
_LOCALES = {"fr": ("Français", "fr_FR"), "en": ("English", "en_GB"), "ar": ("العربية", "ar_MA")}
_DEFAULT = "fr"
_SIZES = (("digital-gigabyte", 10**9), ("digital-megabyte", 10**6), ("digital-kilobyte", 1000))
_PLAIN = str.maketrans("\N{NO-BREAK SPACE}\N{RIGHT SINGLE QUOTATION MARK}", " '")
_DIRECTIONAL_MARKS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class Language:
    """A language of the pages. `name` is its name in the language itself, such as `Français`."""

    code: str
    name: str
    locale: Locale
    words: gettext.NullTranslations

    @property
    def direction(self) -> str:
        """The text direction, `ltr` or `rtl`."""
        return str(self.locale.text_direction)

    def gettext(self, message: str, /, **values: object) -> str:
        """Translate `message` and replace each `%(name)s` with the value from `values`.

        Without `values`, a `%` is literal, because the message may be the text of an error.
        """
        text = self.words.gettext(message)
        return text % values if values else text

    def plain(self, message: str, /, **values: object) -> str:
        """Translate `message`, then replace no-break spaces and curly apostrophes with plain ones.

        Consoles and email headers use this text.
        """
        text = _plain_message(self.words, message)
        return text % values if values else text

    def ngettext(self, one: str, many: str, count: int, /, **values: object) -> str:
        """Translate the message in its plural form for `count`.

        The placeholders are replaced with `count` and the members of `values`.
        """
        return self.words.ngettext(one, many, count) % {"count": count, **values}

    def short_date(self, day: date, *, year: bool = False) -> str:
        """Format a date like `sam. 21 nov.`, with the year if `year` is True."""
        skeleton = "yMMMEd" if year else "MMMEd"
        return format_skeleton(skeleton, day, locale=self.locale)

    def long_date(self, day: date) -> str:
        """Format a date like `samedi 21 novembre 2026`."""
        return format_date(day, "full", locale=self.locale)

    def moment(self, at: int, zone: ZoneInfo) -> str:
        """Format `at` (ms since 1970) in the zone's time, such as `sam. 21 nov. à 17:30`."""
        then = datetime.fromtimestamp(at / 1000, zone)
        return self.gettext(
            "%(date)s at %(time)s", date=self.short_date(then.date()), time=f"{then:%H:%M}"
        )

    def list(self, items: Iterable[str]) -> str:
        """Join `items` as in a sentence, such as `T2, T5 et T7`."""
        return format_list(list(items), locale=self.locale)

    def size(self, bytes_: int) -> str:
        """Format a file size in decimal units, such as `36 ko`, `1,5 Mo` or `288 Mo`."""
        unit, size = next((pair for pair in _SIZES if bytes_ >= pair[1]), _SIZES[-1])
        has_decimal = size > 1000 and bytes_ < 10 * size
        number = round(bytes_ / size, 1) if has_decimal else -(-bytes_ // size)
        return format_unit(number, unit, length="short", locale=self.locale)


@lru_cache(maxsize=1024)
def _plain_message(words: gettext.NullTranslations, message: str) -> str:
    return words.gettext(message).translate(_PLAIN)


class Languages:
    """All languages of the pages, in display order."""

    def __init__(self, by_code: Mapping[str, Language]) -> None:
        self._by_code = dict(by_code)

    def all(self) -> tuple[Language, ...]:
        """Return all languages in display order."""
        return tuple(self._by_code.values())

    def get(self, code: str | None) -> Language:
        """Return the language with this `code`, or French if the code is None or unknown."""
        return self._by_code.get(code or "", self._by_code[_DEFAULT])

    def of(self, request: "web.Request") -> Language:
        """Return the language in `?lang=` if it is known, or else the best in Accept-Language."""
        asked = request.query.get("lang", "").lower()
        if asked in self._by_code:
            return self._by_code[asked]
        return self.accepted(request.headers.get("Accept-Language", ""))

    def accepted(self, header: str) -> Language:
        """Return the preferred available language in an Accept-Language header, or French."""
        languages = [_parse_accepted(part) for part in header[:500].split(",")]
        known = [each for each in languages if each[1] > 0 and each[0] in self._by_code]
        return self.get(max(known, key=lambda each: each[1])[0] if known else None)


def mark(message: str) -> str:
    """Mark `message` for extraction into the catalogues, and return it untranslated."""
    return message


def isolate(name: str | None) -> str | None:
    """Wrap `name` in Unicode isolates so that it does not reorder the surrounding text."""
    if name is None:
        return None
    plain = "".join(c for c in name if c not in _DIRECTIONAL_MARKS)
    return f"\N{FIRST STRONG ISOLATE}{plain}\N{POP DIRECTIONAL ISOLATE}"


def set_french(text: str) -> str:
    """Return `text` with no-break spaces before French punctuation, and curly apostrophes."""
    spaced = _SPACE.sub("\N{NO-BREAK SPACE}", text)
    return _APOSTROPHE.sub("\N{RIGHT SINGLE QUOTATION MARK}", spaced)


@cache
def load_languages() -> Languages:
    """Load French, English and Arabic from the catalogues, once per process."""
    return Languages({
        code: Language(code, name, Locale.parse(locale), _words(code))
        for code, (name, locale) in _LOCALES.items()
    })  # fmt: skip


def _words(code: str) -> gettext.NullTranslations:
    if code == "en":  # the messages in the code are in English
        return gettext.NullTranslations()
    text = resources.files("appliance").joinpath("catalogues", f"{code}.po").read_text("utf-8")
    return _Catalogue(text, set_french if code == "fr" else str)


class _Catalogue(gettext.NullTranslations):
    """The translations in the text of a `.po` file, each passed through `finish`."""

    def __init__(self, text: str, finish: Callable[[str], str]) -> None:
        super().__init__()
        self._forms: dict[str, list[str]] = {}
        for field, quoted in _FIELD.findall(text):
            value = json.loads(quoted.strip().replace('"\n"', ""))  # the escapes are the same
            if field == "msgid":
                forms = self._forms.setdefault(value, [])
            elif field != "msgid_plural" and value:
                forms.append(finish(value))
        header = self._forms.pop("")[0]
        self._choose = gettext.c2py(header.partition("; plural=")[2].partition(";")[0])

    def gettext(self, message: str) -> str:
        """Return the translation of `message`, or `message` itself if there is none."""
        forms = self._forms.get(message)
        return forms[0] if forms else message

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """Return the translation for `n`, or else the English form."""
        forms = self._forms.get(msgid1)
        return forms[self._choose(n)] if forms else super().ngettext(msgid1, msgid2, n)


def _parse_accepted(part: str) -> tuple[str, float]:
    """Parse an entry such as `fr-CA;q=0.8` into (language, weight). An invalid weight is 0."""
    tag, _, rest = part.partition(";")
    name, _, number = rest.strip().partition("=")
    try:
        weight = float(number) if name.strip() == "q" else 1.0
    except ValueError:
        weight = 0.0
    return tag.strip().partition("-")[0].lower(), weight


def is_currency(code: str) -> bool:
    """Whether `code` is the ISO 4217 code of a currency that some country uses today."""
    return code in _currencies()


@cache
def _currencies() -> frozenset[str]:
    used = get_global("territory_currencies").values()
    return frozenset(
        code for currencies in used for code, _, until, is_tender in currencies
        if until is None and is_tender
    )  # fmt: skip
