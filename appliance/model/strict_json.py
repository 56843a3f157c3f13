"""JSON as the box accepts it: one object, no duplicate members, nothing that breaks parsers."""

import json
import re
from typing import Any

from appliance.errors import InvalidJson

_TROUBLING_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_DEEPEST = 32


def parse_object(raw: bytes) -> dict[str, Any]:
    """The object in `raw`, or InvalidJson (docs/decisions/requests-and-errors.md).

    Refused: other values than objects, invalid UTF-8, duplicate members, NaN and infinities
    (1e999 too), lone surrogates, NUL characters, numbers of thousands of digits, more than
    32 levels.
    """
    try:
        text = raw.decode("utf-8")
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise InvalidJson from None
    if not isinstance(value, dict) or _is_deeper_than(value, _DEEPEST):
        raise InvalidJson
    if _TROUBLING_ESCAPE.search(text) and not _is_storable(value):
        raise InvalidJson
    return value


def _refuse_duplicates(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("duplicate member")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in {float("inf"), float("-inf")}:
        raise ValueError("out of range")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant, parse_float=_finite
)


def _is_deeper_than(value: Any, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        inner: list[Any] = []
        for item in layer:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return False
        layer = inner
    return True


def _is_storable(value: Any) -> bool:
    """Whether no string in it holds a NUL character or a lone surrogate."""
    if isinstance(value, str):
        return not any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, dict):
        return all(_is_storable(part) for pair in value.items() for part in pair)
    return not isinstance(value, list) or all(map(_is_storable, value))
