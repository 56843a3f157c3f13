"""Phone numbers: found in what people type, compared, searched and linked in one form, E.164.

The library behind it, Google's libphonenumber, is imported only where a number is read.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from babel.core import get_global

from appliance.core.text import fold, one_line, western_digits

PHONE_MAX = 40  # in characters
LAST_DIGITS = 4
_SEARCHED_MIN = 3  # in digits
_DIGITS = range(6, 21)
_WITH_TRUNK_ZERO = 12  # digits of a number with a country code followed by a 0
_TYPED_MAX = 200  # only this many characters are searched for numbers
_COUNTRY = "MA"
_TRUNK_ZERO = re.compile(r"\(\s*0\s*\)")
_NUMBER_SIGNS = re.compile(r"(?:tel:)?[\d\s+./()#*_-]+")


def country_of(time_zone: str) -> str:
    """Return the ISO code of the country whose numbers are dialled without a country code."""
    country: str | None = get_global("zone_territories").get(time_zone)
    return country or _COUNTRY


def clean_phone(text: str) -> str:
    """Return a typed phone number on one line, with the digits 0 to 9, as it is stored."""
    if not (text.isascii() and text.isprintable()):
        visible = "".join(c for c in one_line(text) if unicodedata.category(c) != "Cf")
        text = western_digits(visible)
    return " ".join(text.split())


def is_phone(text: str) -> bool:
    """Whether `text` has 6 to 20 digits, and at most PHONE_MAX characters."""
    return len(text) <= PHONE_MAX and sum(c.isdecimal() for c in text) in _DIGITS


def find_numbers(text: str | None, country: str) -> list[str]:
    """Return the phone numbers in `text` in E.164, such as `+212612345678`, without extensions.

    Only numbers that exist in their country's numbering plan are returned. `country` is that of
    numbers without a country code.
    """
    plain = fold(text or "")[:_TYPED_MAX]
    if not any(c.isdecimal() for c in plain):
        return []
    import phonenumbers  # noqa: PLC0415 - 30 ms and 3 MB

    if _NUMBER_SIGNS.fullmatch(plain) and (number := _parse(plain, country)):
        return [number]
    matcher = phonenumbers.PhoneNumberMatcher(plain, country)
    found = [_e164(match.number) for match in matcher] or _divide(plain, country)
    return list(dict.fromkeys(found))


def _divide(plain: str, country: str) -> list[str]:
    """Return the numbers in groups of digits that the library does not recognise as numbers.

    Each number must take up whole groups, and all groups must belong to a number.
    """
    found: list[str] = []
    digits = ""
    for group in re.findall(r"\+?\d+", _TRUNK_ZERO.sub("", plain)):
        digits += group
        if number := _parse(digits, country):
            found.append(number)
            digits = ""
    return [] if digits else found


def _parse(text: str, country: str) -> str | None:
    """Return the number that `text` as a whole is, in E.164, or None if there is no such number."""
    import phonenumbers  # noqa: PLC0415 - see find_numbers

    try:
        parsed = phonenumbers.parse(text, country)
    except phonenumbers.NumberParseException:
        return None
    return _e164(parsed) if phonenumbers.is_valid_number(parsed) else None


def _e164(parsed: Any) -> str:
    import phonenumbers  # noqa: PLC0415 - see find_numbers

    written: str = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)
    return written


def spell_number(number: str) -> str:
    """Return a number in E.164 as people read it: `+212 6 12 34 56 78`."""
    import phonenumbers  # noqa: PLC0415 - see find_numbers

    international = phonenumbers.PhoneNumberFormat.INTERNATIONAL
    spelled: str = phonenumbers.format_number(phonenumbers.parse(number), international)
    return spelled


def write_phone_cell(typed: str | None, numbers: Iterable[str]) -> str:
    """Return a CSV cell that spreadsheets treat as text, such as `tel:+212600123457`."""
    return " ".join(f"tel:{number}" for number in numbers) or (f"tel. {typed}" if typed else "")


def is_asked_for(query: str) -> bool:
    """Whether `query` is a number of at least four digits, which may be compared with guests'."""
    return len(_read_query(query)) >= LAST_DIGITS


def contains(typed: str | None, numbers: Iterable[str], query: str) -> bool:
    """Whether a phone number contains `query`, which has at least three digits.

    `numbers` are the numbers in E.164 that were found in `typed`.
    """
    if not (wanted := _variants(query)):
        return False
    return any(digits in known for known in searched_numbers(typed, numbers) for digits in wanted)


def ends_or_equals(typed: str | None, numbers: Iterable[str], query: str) -> bool:
    """Whether `query` is a whole phone number or its last four digits.

    A whole number may lack the country code, which is not assumed to be the venue's.
    """
    if not (digits := _read_query(query)):
        return False
    known = _whole(typed, numbers)
    if len(digits) == LAST_DIGITS:
        return any(number.endswith(digits) for number in known)
    return any(_equals(number, digits) for number in known for digits in _variants(query))


def is_same(typed: str, numbers: Iterable[str], wanted: str, country: str) -> bool:
    """Whether `wanted`, typed in any form, names one of a guest's phone numbers.

    A number without a country code is one of `country`, if there is such a number.
    """
    stored, sought = list(numbers), find_numbers(wanted, country)
    if stored and sought:
        return not set(sought).isdisjoint(stored)
    known = _whole(typed, stored)
    return any(_equals(number, digits) for number in known for digits in _variants(wanted))


def _whole(typed: str | None, numbers: Iterable[str]) -> list[str]:
    """Return `numbers`, or if there are none, the digits typed, with `+` before a country code."""
    plain, digits = fold(typed or "").strip(), _digits(typed or "").lstrip("0")
    return list(numbers) or [f"+{digits}" if plain.startswith(("+", "00")) else digits]


def _equals(known: str, digits: str) -> bool:
    """Whether `digits` are all digits of `known`, or all but those of its country code."""
    if known.removeprefix("+") == digits or not known.startswith("+"):
        return known.removeprefix("+") == digits
    if not known.endswith(digits):
        return False
    import phonenumbers  # noqa: PLC0415 - see find_numbers

    try:
        parsed = phonenumbers.parse(known)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.national_significant_number(parsed) == digits


def searched_numbers(typed: str | None, numbers: Iterable[str]) -> list[str]:
    """Return the texts in which `contains` looks: `numbers`, and the digits typed."""
    return [*numbers, _digits(typed or "")]


@lru_cache(maxsize=64)
def _read_query(query: str) -> str:
    """Return the digits of `query` if it looks like all or part of a phone number, else `""`."""
    plain = fold(query).strip()
    digits = _digits(plain)
    is_number = _NUMBER_SIGNS.fullmatch(plain) is not None
    return digits if is_number and len(digits) >= _SEARCHED_MIN else ""


@lru_cache(maxsize=64)  # each query is compared with many numbers
def _variants(query: str) -> frozenset[str]:
    """Return the digits of a number that is searched for, also without its zeros.

    These are the zeros in front, and one after a country code, as in `+212 06…`. The same rules are
    in web/frontend/src/shared/phone_numbers.ts.
    """
    digits = _read_query(query)
    plain = digits.lstrip("0")
    found = {digits, plain}
    if fold(query).strip().startswith(("+", "00")) or len(plain) >= _WITH_TRUNK_ZERO:
        found |= {plain[:n] + plain[n + 1 :] for n in (1, 2, 3) if plain[n : n + 1] == "0"}
    return frozenset(one for one in found if len(one) >= _SEARCHED_MIN)


def _digits(text: str) -> str:
    return "".join(c for c in _TRUNK_ZERO.sub("", fold(text)) if c.isdecimal())
