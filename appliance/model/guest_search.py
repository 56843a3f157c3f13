"""Finding a guest in the evening's list: by name, code, table or last digits of the phone."""

import unicodedata
from collections.abc import Iterable

from appliance.model.reservation import Reservation

_FEWEST_DIGITS = 3


def search(reservations: Iterable[Reservation], query: str) -> list[Reservation]:
    """Those whom every word of `query` fits, in their order; all of them for a blank one."""
    words = _fold(query).split()
    return [found for found in reservations if all(_fits(found, word) for word in words)]


def fits(reservation: Reservation, query: str) -> bool:
    """Whether every word of `query` fits, or its digits are in the phone number."""
    words = _fold(query).split()
    if all(_fits(reservation, word) for word in words):
        return True
    digits = _digits(query)
    spelled = all(sign.isdecimal() or sign in "+-./() " for sign in query)
    return (
        spelled and len(digits) >= _FEWEST_DIGITS and digits in _digits(reservation.customer_phone)
    )


def search_by_name(reservations: Iterable[Reservation], query: str) -> list[Reservation]:
    """Those whose name has a word that begins with each word of `query`."""
    words = _fold(query).split()
    return [found for found in reservations if words and _is_named(found, words)]


def _fits(reservation: Reservation, word: str) -> bool:
    code = (reservation.access_code or "").lower()
    return (
        word in _fold(reservation.customer_name or "")
        or word in _fold(reservation.table_name)
        or (bool(code) and word in {code, code[4:], code.replace("-", "")})
        or _ends_phone(reservation.customer_phone, word)
    )


def _ends_phone(phone: str | None, word: str) -> bool:
    if phone is None or not word.isdecimal() or len(word) < _FEWEST_DIGITS:
        return False
    return _digits(phone).endswith(word)


def _digits(text: str | None) -> str:
    return "".join(sign for sign in text or "" if sign.isdecimal())


def _is_named(reservation: Reservation, words: list[str]) -> bool:
    names = _fold(reservation.customer_name or "").split()
    return all(any(name.startswith(word) for name in names) for word in words)


def _fold(text: str) -> str:
    """Without case, accents and Arabic vowel signs."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in parts if not unicodedata.combining(sign))
