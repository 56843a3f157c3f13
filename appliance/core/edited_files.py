"""Read TOML files that people edit by hand, and report errors by line.

Editors add marks and signs that nobody sees: a byte order mark, curly quotation marks, no-break
spaces, or another encoding.
"""

import codecs
import re
import tomllib
import unicodedata
from typing import Any

from appliance.core.errors import OperatorError

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WINDOWS = "cp1252"
_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_QUOTATION_MARKS = frozenset("“”„‟«»″＂‘’‚‛′＇`´")
_PRESENT = "The file has this section already: write the settings there."


def decode_edited(raw: bytes, name: str) -> str:
    """Return the text of the file `name`, without a byte order mark.

    Raises OperatorError with the line if it is not UTF-8.
    """
    if raw.startswith(_UTF_16) or b"\0" in raw[:4]:
        raise OperatorError(f"{name} is saved as UTF-16. Save it as UTF-8.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        sign = raw[error.start : error.start + 1].decode(_WINDOWS, "replace")
        raise OperatorError(
            f"{name} is not saved as UTF-8: line {line} contains {sign} in another encoding. "
            "Save the file as UTF-8."
        ) from None


def parse_edited(text: str, name: str) -> dict[str, Any]:
    """Parse the TOML in `text`, the content of the file `name`.

    Raises OperatorError with the line, and with the sign in it that an editor may have put there.
    """
    try:
        return tomllib.loads(text)
    # tomllib raises ValueError for a syntax error, and also for a number that has more digits than
    # Python will convert (4,300), and RecursionError for values that are nested too deeply.
    except (ValueError, RecursionError) as error:
        said = str(error)
    hint = _PRESENT if said.startswith("Cannot declare") else ""
    found = _LINE.search(said)
    if found is not None:
        hint = hint or _explain(text.split("\n")[int(found[1]) - 1], int(found[1]))
    raise OperatorError(f"{name} cannot be read: {said}{hint and f'. {hint}'}")


def _explain(line: str, number: int) -> str:
    """Return a sentence about the first unusual sign in the line, or ""."""
    for sign in line:
        if sign in _QUOTATION_MARKS:
            return f'Line {number} contains {sign}. Write a straight quotation mark: "'
        if not sign.isascii() and unicodedata.category(sign) in {"Zs", "Cf", "Zl", "Zp"}:
            called = unicodedata.name(sign, "an invisible sign").lower()
            return f"Line {number} contains an invisible sign ({called}). Delete it."
    return ""
