"""The `[[readers]]` tables in settings.toml. Each table configures one scanner."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from appliance.core.errors import OperatorError

KINDS = ("serial", "evdev", "tcp")
COLOURS = ("green", "amber", "red", "grey")
ENVIRONMENTS = ("live", "test")
_BAUDS = (1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200)
_ESCAPES = {"r": b"\r", "n": b"\n", "t": b"\t", "a": b"\a", "\\": b"\\"}
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.?))", re.DOTALL)
_ANSWER_BYTES = 256
_LONGEST_TEXT = 200


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value.strip()) <= _LONGEST_TEXT


def _is_path(value: object) -> bool:
    return _is_text(value) and str(value).strip().startswith("/")


def _is_baud(value: object) -> bool:
    return type(value) is int and value in _BAUDS


def _setting(
    default: Any, is_allowed: Callable[[Any], bool], allowed: str, *kinds: str, missing: str = ""
) -> Any:
    """Declare a setting for scanners of the given `kinds`, or of all kinds if none is given.

    `default` is a value, or the type `dict` for an empty table. A setting with a `missing` text is
    required; the error message for a missing setting includes the text.
    """
    metadata = {
        "check": is_allowed, "allowed": allowed, "kinds": kinds or KINDS, "missing": missing
    }  # fmt: skip
    return field(default_factory=dict if default is dict else lambda: default, metadata=metadata)


_A_TEXT = f"text of 1 to {_LONGEST_TEXT} characters"
_A_PATH = "a path such as /dev/serial/by-id/…"
_A_BAUD = f"{', '.join(map(str, _BAUDS))}"


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """The settings of one scanner.

    `terminal` is the id or the name of the terminal that receives the scans. `answer` maps a
    verdict's colour to the bytes to send back, in parts that are sent half a second apart.
    The bytes go to the scanner or, if `answer_device` is set, to a relay on that serial port. If a
    code is scanned again within 3 s, the bytes are sent again, except those for green, which may
    open a turnstile. With `repeat_answer`, the bytes for green are sent again too.
    """

    kind: str = _setting("", lambda value: value in KINDS, f"{', '.join(KINDS)}")
    terminal: str = _setting(
        "",
        _is_text,
        _A_TEXT,
        missing="the id or the name of the terminal that receives the scans",
    )
    environment: str = _setting(
        "live", lambda value: value in ENVIRONMENTS, f"{' or '.join(ENVIRONMENTS)}"
    )
    device: str = _setting(
        "", _is_path, _A_PATH, "serial", "evdev",
        missing="the path of the scanner, preferably in /dev/serial/by-id or /dev/input/by-id",
    )  # fmt: skip
    baud: int = _setting(9600, _is_baud, _A_BAUD, "serial")
    host: str = _setting("127.0.0.1", _is_text, _A_TEXT, "tcp")
    port: int = _setting(
        0, lambda value: type(value) is int and 1 <= value <= 65535, "1 to 65535", "tcp",
        missing="the port to listen on, from 1 to 65535",
    )  # fmt: skip
    answer: Mapping[str, tuple[bytes, ...]] = _setting(
        dict, lambda value: isinstance(value, dict), 'a table such as {green = "…"}'
    )
    answer_device: str = _setting("", _is_path, _A_PATH, "serial", "evdev")
    answer_baud: int = _setting(9600, _is_baud, _A_BAUD, "serial", "evdev")
    repeat_answer: bool = _setting(
        default=False, is_allowed=lambda value: isinstance(value, bool), allowed="true or false"
    )

    def answers(self, colour: str, *, is_repeated: bool) -> bool:
        """Whether to send back the bytes configured for `colour`.

        `is_repeated` is True if the same code was scanned less than 3 s ago.
        """
        opens = colour == "green" and colour in self.answer
        return not (is_repeated and opens) or self.repeat_answer

    @property
    def place(self) -> str:
        """The scanner's device or, for a TCP scanner, the host and port that the box listens on."""
        return self.device if self.kind != "tcp" else f"{self.host}:{self.port}"


def parse_readers(tables: object, *, on_a_bridge: bool = False) -> tuple[ReaderSettings, ...]:
    """Parse the `readers` array.

    With `on_a_bridge`, `terminal` and `environment` are not allowed, because all scans at a bridge
    go to the bridge's own terminal. Raises OperatorError if a setting is invalid. The message
    contains the reader's number, the setting, the value and the allowed values.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise OperatorError(
            "readers in settings.toml must be an array of tables. Start each with [[readers]]."
        )
    readers = tuple(_parse(f"readers[{n}]", t, on_a_bridge) for n, t in enumerate(tables, 1))
    places = [reader.place for reader in readers]
    for place in places:
        if places.count(place) > 1:
            raise OperatorError(
                f"two readers use {place}. Give each reader its own device or port."
            )
    return readers


def _parse(where: str, table: Mapping[str, Any], on_a_bridge: bool) -> ReaderSettings:  # noqa: FBT001 - called once
    kind = table.get("kind", "")
    known = {
        item.name: item.metadata
        for item in dataclasses.fields(ReaderSettings)
        if (kind not in KINDS or kind in item.metadata["kinds"])
        and not (on_a_bridge and item.name in {"terminal", "environment"})
    }
    values: dict[str, Any] = {}
    for name, value in ({"kind": kind} | dict(table)).items():
        if name not in known:
            raise OperatorError(f"unknown setting {where}.{name}. Use one of {', '.join(known)}.")
        if not known[name]["check"](value):
            raise OperatorError(
                f"{where}.{name} is {value!r}, but must be {known[name]['allowed']}"
            )
        values[name] = value.strip() if isinstance(value, str) else value
    for name, declared in known.items():
        if declared["missing"] and name not in values:
            raise OperatorError(f"{where}.{name} is missing. Set it to {declared['missing']}.")
    if kind == "evdev" and "answer" in values and "answer_device" not in values:
        raise OperatorError(
            f"{where}.answer_device is missing. A keyboard scanner cannot receive an answer. Set "
            "answer_device to the serial port of a relay board or lamp, or remove answer."
        )
    answers = {}
    for colour, text in values.get("answer", {}).items():
        if colour not in COLOURS:
            allowed = ", ".join(COLOURS)
            raise OperatorError(f"unknown setting {where}.answer.{colour}. Use one of {allowed}.")
        answers[colour] = _parse_answer(f"{where}.answer.{colour}", text)
    return ReaderSettings(**values | {"answer": answers})


def _parse_answer(name: str, text: Any) -> tuple[bytes, ...]:
    r"""Split `text` at each \p and convert the escapes \xHH \r \n \t \a \\. Returns the parts."""
    if not isinstance(text, str):
        raise OperatorError(f"{name} is {text!r}, but must be text")
    parts, at = [b""], 0
    for escape in _ESCAPE.finditer(text):
        parts[-1] += text[at : escape.start()].encode("utf-8", "surrogatepass")
        at = escape.end()
        if escape[1] is not None:
            parts[-1] += bytes.fromhex(escape[1])
        elif escape[2] == "p":  # `\p` means a pause of half a second
            parts.append(b"")
        elif escape[2] in _ESCAPES:
            parts[-1] += _ESCAPES[escape[2]]
        else:
            raise OperatorError(
                rf"{name} is {text!r}, but only the escapes \xHH \r \n \t \a \p \\ are allowed"
            )
    parts[-1] += text[at:].encode("utf-8", "surrogatepass")
    if sum(map(len, parts)) + len(parts) > _ANSWER_BYTES:
        raise OperatorError(
            rf"{name} is too long. Each byte and each pause (\p) counts as one, and at most "
            f"{_ANSWER_BYTES - 1} are allowed."
        )
    return tuple(parts)


EXAMPLE = r"""
# Scanners connected to this computer, one [[readers]] table each; see docs/guide/scanners.md.
# [[readers]]
# kind = "serial"                        # serial, evdev or tcp
# device = "/dev/serial/by-id/usb-..."   # evdev: /dev/input/by-id/...; tcp: host and port
# baud = 9600
# terminal = "Porte 1"                   # the terminal's id or name
# environment = "live"
# answer = { green = '\xA0\x01\x01\xA2\p\xA0\x01\x00\xA1' }   # bytes sent back; \p waits 0.5 s
"""
