"""French as it is set: no line begins with `:` `;` `!` `?` or `»`, and an apostrophe is curved."""

import re

_SPACE = re.compile(r" (?=[:;!?»])|(?<=«) ")
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")


def set_french(text: str) -> str:
    """`text` with the spaces that no line breaks at, and the apostrophes that print has."""
    spaced = _SPACE.sub("\N{NO-BREAK SPACE}", text)
    return _APOSTROPHE.sub("\N{RIGHT SINGLE QUOTATION MARK}", spaced)
