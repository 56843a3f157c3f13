"""What a language has to say in letters. Each language fills one of these in a file of its own."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

_UNSEEN = {"Cc", "Cs", "Zl", "Zp"}
_TURNING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # bidi overrides, isolates
_FIRST_NAME_MAX = 40


@dataclass(frozen=True, slots=True)
class KindWords:
    """What one kind of letter says. `{venue}` and `{day}` are filled in."""

    subject: str
    heading: str
    intro: str


@dataclass(frozen=True, slots=True)
class Words:
    """Everything visible in a letter, in one language. Braces are filled in."""

    language: str
    locale: str
    direction: Literal["ltr", "rtl"]
    colon: str
    greeting: str
    greeting_without_name: str
    evening: str
    table: str
    guests: str
    address: str
    code: str
    during: str
    whole_evening: str
    party: Mapping[str, str]
    at_the_door: str
    picture: str
    button: str
    link: str
    see_button: str
    see_link: str
    minimum_spend: str
    received: str
    undo: str
    stop: str
    calendar_title: str
    footer: str
    personal: str
    kinds: Mapping[str, KindWords]


def one_line(text: str) -> str:
    """`text` without line breaks, control characters and marks that turn the writing around.

    What a guest or an owner typed cannot leave its line, be it in a header or in the body:
    Python's own header writer decodes what looks like an encoded word, line breaks included.
    """
    kept = (" " if unicodedata.category(c) in _UNSEEN else c for c in text if c not in _TURNING)
    return " ".join("".join(kept).replace("=?", "= ?").split())


def name_to_greet(given_name: str | None) -> str | None:
    """The first name, when it is one: an address typed as a name must not become a link."""
    name = one_line(given_name or "")
    letters = all(unicodedata.category(c)[0] in "LM" or c in "-'’ʼ " for c in name)
    return name if name and letters and len(name) <= _FIRST_NAME_MAX else None
