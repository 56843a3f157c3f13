"""Declare settings as fields of dataclasses, and check their values."""

import re
from collections.abc import Callable
from dataclasses import Field, field
from typing import Any

from appliance.core.errors import OperatorError

_TYPES = {
    int: "a whole number",
    bool: "true or false",
    str: "text",
    tuple[str, ...]: "a list of strings",
    dict: 'a table such as {green = "…"}',
}


def checked(default: Any, allowed: str, is_allowed: Callable[[Any], bool], **more: object) -> Any:
    """Declare a setting. `allowed` describes the values for which `is_allowed` returns True.

    `more` is further metadata of the field: with `is_secret`, no message shows the value.
    """
    return field(default=default, metadata={"allowed": allowed, "check": is_allowed, **more})


def within(default: int, first: int, last: int, **more: object) -> Any:
    """Declare a whole number from `first` to `last`."""
    allowed, range_ = f"{first} to {last}", (first, last)
    return checked(default, allowed, lambda n: first <= n <= last, range=range_, **more)


def one_of(default: Any, *values: Any, **more: object) -> Any:
    """Declare a setting with a fixed set of values."""
    *others, last = map(str, values)
    return checked(default, f"{', '.join(others)} or {last}", values.__contains__, **more)


def check_setting(name: str, hint: Any, item: Field[Any], value: Any) -> Any:
    """Return `value` for the field `item` of type `hint`, with a list converted to a tuple.

    Raises OperatorError if its type or value is not allowed.
    """
    is_list = isinstance(value, list) and all(isinstance(part, str) for part in value)
    if hint == tuple[str, ...] and is_list:
        value = tuple(value)
    elif type(value) is not hint:
        raise OperatorError(f"{name} is {value!r}, but must be {_TYPES[hint]}")
    if "check" in item.metadata and not item.metadata["check"](value):
        shown = re.sub(r"(//[^/:@]*):[^/@]*@", r"\1:…@", repr(value))  # hide a password
        if item.metadata.get("is_secret"):
            shown = "not valid"
        raise OperatorError(f"{name} is {shown}, but must be {item.metadata['allowed']}")
    return value
