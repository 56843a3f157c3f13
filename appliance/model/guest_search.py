"""Finding a guest in the evening's list: by name, code, table or last digits of the phone."""

import re
from collections.abc import Iterable

from appliance.model.folded import fold
from appliance.model.reservation import Reservation

_FEWEST_DIGITS = 3
_WHOLE_NUMBER = 9  # digits of a phone number without its country and its leading 0
_NAME_MAX = 80
_NAME = re.compile(r"[^\W\d_]{2,}(?:[\s'’.-]+[^\W\d_]+)*")


def search(reservations: Iterable[Reservation], query: str) -> list[Reservation]:
    """Those whom every word of `query` fits, or whose phone ends with it; all for a blank one."""
    words, number = fold(query).split(), _read_number(query)
    return [
        found
        for found in reservations
        if all(_fits(found, word) for word in words) or _ends_phone(found.customer_phone, number)
    ]


def fits(reservation: Reservation, query: str) -> bool:
    """Whether every word of `query` fits, or its digits are in the phone number."""
    if all(_fits(reservation, word) for word in fold(query).split()):
        return True
    number, phone = _read_number(query), _digits(reservation.customer_phone)
    return bool(number) and (number in phone or _ends_phone(phone, number))


def search_by_name(reservations: Iterable[Reservation], query: str) -> list[Reservation]:
    """Those whose name has a word that begins with each word of `query`."""
    words = fold(query).split()
    return [found for found in reservations if words and _is_named(found, words)]


def names_table(name: str, number: str, word: str) -> bool:
    """Whether a folded word is in the table's name, or is its number."""
    return word in fold(name) or word == fold(number)


def is_name(text: str) -> bool:
    """Whether a text that was typed may be somebody's name: words of letters, no lone one."""
    folded = fold(text).strip()
    return len(folded) <= _NAME_MAX and _NAME.fullmatch(folded) is not None


def _fits(reservation: Reservation, word: str) -> bool:
    code = (reservation.access_code or "").lower()
    return (
        word in fold(reservation.customer_name or "")
        or names_table(reservation.table_name, reservation.table_number, word)
        or (bool(code) and word in {code, code[4:], code.replace("-", "")})
        or (word.isdecimal() and _ends_phone(reservation.customer_phone, _read_number(word)))
    )


def _read_number(query: str) -> str:
    """The digits of a text that is written as a phone number, or of its end; else nothing."""
    folded = fold(query)
    digits = _digits(folded)
    is_number = all(sign.isdecimal() or sign in "+-./() " for sign in folded)
    return digits if is_number and len(digits) >= _FEWEST_DIGITS else ""


def _ends_phone(phone: str | None, number: str) -> bool:
    """Whether the phone's digits end so; a whole number may lack its country, or have another 0."""
    digits = _digits(phone)
    if not number or not digits:
        return False
    if digits.endswith(number):
        return True
    short, long = sorted((digits.lstrip("0"), number.lstrip("0")), key=len)
    return len(short) >= _WHOLE_NUMBER and long.endswith(short)


def _digits(text: str | None) -> str:
    return "".join(sign for sign in fold(text or "") if sign.isdecimal())


def _is_named(reservation: Reservation, words: list[str]) -> bool:
    names = fold(reservation.customer_name or "").split()
    return all(any(name.startswith(word) for name in names) for word in words)
