"""JSON as the box accepts it: one object, no duplicate members, nothing that breaks parsers."""

import json
import re
from typing import Any

from appliance.errors import InvalidJson

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_DEEPEST = 32


def parse_object(raw: bytes) -> dict[str, Any]:
    """The object in `raw`, or InvalidJson (decisions.md).

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
    if "\\u0000" in text or "\x00" in text:
        raise InvalidJson
    if _SURROGATE_ESCAPE.search(text) and _has_lone_surrogate(value):
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


def _has_lone_surrogate(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
