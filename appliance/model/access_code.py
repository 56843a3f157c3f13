"""The access code as people type it: `SVC-7K2M`, `svc 7k2m`, `٧K٢M`, and what they mistake."""

import re
from itertools import product

from appliance.model.folded import western_digits

_FORM = re.compile(r"(?:SVC)?([0-9A-Z]{4})")
_SEPARATORS = re.compile(r"[\s._–-]+")
# What is typed, and the letters of the alphabet (tokens.py) that it may have been.
_LOOKALIKES = {
    "0": "QD", "O": "QD", "Q": "QD", "D": "DQ", "1": "J7", "I": "J7", "L": "J7",
    "2": "2Z", "Z": "Z2", "5": "5S", "S": "S5", "6": "6G", "G": "G6", "8": "8B", "B": "B8",
    "U": "UV", "V": "VU",
}  # fmt: skip


def parse_access_code(text: str) -> str | None:
    """The code as stored, `SVC-XXXX`, or None for a text of another form."""
    match = _FORM.fullmatch(_SEPARATORS.sub("", western_digits(text).upper()))
    return f"SVC-{match[1]}" if match else None


def lookalikes(access_code: str) -> list[str]:
    """The codes that can be mistaken for `access_code`, itself left out."""
    choices = (_LOOKALIKES.get(letter, letter) for letter in access_code[4:])
    codes = (f"SVC-{''.join(letters)}" for letters in product(*choices))
    return [code for code in codes if code != access_code]
