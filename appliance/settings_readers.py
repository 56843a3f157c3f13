"""The readers of settings.toml: `[[readers]]`, one table for each scanner."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from appliance.errors import Trouble

KINDS = ("serial", "evdev", "tcp")
COLOURS = ("green", "amber", "red", "grey")
ENVIRONMENTS = ("live", "test")
PAUSE = "p"  # the escape \p: half a second between two parts of an answer

_COMMON = ("kind", "terminal", "environment")
_OF_KIND: Mapping[str, tuple[str, ...]] = {
    "serial": ("device", "baud", "answer", "answer_device", "answer_baud", "repeat_answer"),
    "evdev": ("device", "answer", "answer_device", "answer_baud", "repeat_answer"),
    "tcp": ("host", "port", "answer", "repeat_answer"),
}
_BAUDS = (1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200)
_ESCAPES = {"r": b"\r", "n": b"\n", "t": b"\t", "a": b"\a", "\\": b"\\"}
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.?))", re.DOTALL)
_ANSWER_BYTES = 256
_LONGEST_TEXT = 200


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """One reader. `terminal` is the id or the name of the terminal whose scans these are.

    `answer` holds, for each colour that is answered, the bytes to send back; half a second
    passes between two parts. They go to the scanner itself, or to the serial port
    `answer_device` where a relay of its own is. A code that is shown again within 3 s gets its
    answer again, but for the bytes of green: they may open a turnstile. `repeat_answer` sends
    those too.
    """

    kind: str
    terminal: str = ""
    environment: str = "live"
    device: str = ""
    baud: int = 9600
    host: str = "127.0.0.1"
    port: int = 0
    answer: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    answer_device: str = ""
    answer_baud: int = 9600
    repeat_answer: bool = False

    def answers(self, colour: str, *, is_repeated: bool) -> bool:
        """Whether an answer of that colour is given, or was given a moment ago."""
        opens = colour == "green" and colour in self.answer
        return not (is_repeated and opens) or self.repeat_answer

    @property
    def place(self) -> str:
        """Where it reads: the device, or the address that it listens on."""
        return self.device if self.kind != "tcp" else f"{self.host}:{self.port}"


def parse_readers(tables: object, *, on_a_bridge: bool = False) -> tuple[ReaderSettings, ...]:
    """The readers in the value of `readers`. On a bridge all belong to the bridge's terminal.

    Trouble names the reader by its number, the setting, the value and what is allowed.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise Trouble("readers in settings.toml must be tables of their own: [[readers]]")
    found = tuple(_parse(f"readers[{n}]", table, on_a_bridge) for n, table in enumerate(tables, 1))
    places = [reader.place for reader in found]
    for place in places:
        if places.count(place) > 1:
            raise Trouble(f"two readers use {place}: each needs one of its own")
    return found


def _parse(where: str, table: Mapping[str, Any], on_a_bridge: bool) -> ReaderSettings:  # noqa: FBT001 - handed on
    kind = table.get("kind")
    if kind not in KINDS:
        raise Trouble(f"{where}.kind is {kind!r}: {', '.join(KINDS)} are allowed")
    names = (("kind",) if on_a_bridge else _COMMON) + _OF_KIND[kind]
    for name in table:
        if name not in names:
            raise Trouble(f"unknown setting {where}.{name}: use {', '.join(names)}")
    values = {name: _CHECKS[name](f"{where}.{name}", value) for name, value in table.items()}
    required = ["port" if kind == "tcp" else "device", *([] if on_a_bridge else ["terminal"])]
    for name in required:
        if name not in values:
            raise Trouble(f"{where}.{name} is missing: {_MEANING[name]}")
    if kind == "evdev" and "answer" in values and "answer_device" not in values:
        raise Trouble(f"{where}.answer_device is missing: {_MEANING['answer_device']}")
    return ReaderSettings(**values)


_MEANING = {
    "device": "the path of the scanner, best below /dev/serial/by-id or /dev/input/by-id",
    "answer_device": "a keyboard cannot be answered, but a serial port beside it can",
    "port": "1 to 65535, the port to listen on",
    "terminal": "the id or the name of the terminal whose scans these are",
}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value.strip()) <= _LONGEST_TEXT:
        raise Trouble(f"{name} is {value!r}: text of 1 to {_LONGEST_TEXT} characters is allowed")
    return value.strip()


def _device(name: str, value: Any) -> str:
    path = _text(name, value)
    if not path.startswith("/"):
        raise Trouble(f"{name} is {value!r}: a path such as /dev/serial/by-id/… is allowed")
    return path


def _environment(name: str, value: Any) -> str:
    if value not in ENVIRONMENTS:
        raise Trouble(f"{name} is {value!r}: {' or '.join(ENVIRONMENTS)} is allowed")
    return str(value)


def _baud(name: str, value: Any) -> int:
    if type(value) is not int or value not in _BAUDS:
        raise Trouble(f"{name} is {value!r}: {', '.join(map(str, _BAUDS))} are allowed")
    return value


def _port(name: str, value: Any) -> int:
    if type(value) is not int or not 1 <= value <= 65535:
        raise Trouble(f"{name} is {value!r}: 1 to 65535 is allowed")
    return value


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Trouble(f"{name} is {value!r}: true or false is allowed")
    return value


def _answer(name: str, value: Any) -> Mapping[str, tuple[bytes, ...]]:
    if not isinstance(value, dict):
        raise Trouble(f'{name} is {value!r}: a table such as {{green = "…"}} is allowed')
    for colour in value:
        if colour not in COLOURS:
            raise Trouble(f"unknown setting {name}.{colour}: use {', '.join(COLOURS)}")
    return {colour: parse_bytes(f"{name}.{colour}", text) for colour, text in value.items()}


def parse_bytes(name: str, text: Any) -> tuple[bytes, ...]:
    r"""The parts of an answer: text as UTF-8, with \xHH \r \n \t \a \\ and \p for a pause."""
    if not isinstance(text, str):
        raise Trouble(f"{name} is {text!r}: text is allowed")
    parts, at = [b""], 0
    for escape in _ESCAPE.finditer(text):
        parts[-1] += text[at : escape.start()].encode("utf-8", "surrogatepass")
        at = escape.end()
        if escape[1] is not None:
            parts[-1] += bytes.fromhex(escape[1])
        elif escape[2] == PAUSE:
            parts.append(b"")
        elif escape[2] in _ESCAPES:
            parts[-1] += _ESCAPES[escape[2]]
        else:
            raise Trouble(rf"{name} is {text!r}: the escapes \xHH \r \n \t \a \p \\ are allowed")
    parts[-1] += text[at:].encode("utf-8", "surrogatepass")
    if sum(map(len, parts)) + len(parts) > _ANSWER_BYTES:
        raise Trouble(f"{name} is too long: at most {_ANSWER_BYTES} bytes and pauses are allowed")
    return tuple(parts)


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "kind": _text,
    "terminal": _text,
    "environment": _environment,
    "device": _device,
    "baud": _baud,
    "host": _text,
    "port": _port,
    "answer": _answer,
    "answer_device": _device,
    "answer_baud": _baud,
    "repeat_answer": _truth,
}

EXAMPLE = r"""
# Scanners at this computer, one [[readers]] each; docs/guide/scanners.md has more.
# [[readers]]
# kind = "serial"                        # serial, evdev or tcp
# device = "/dev/serial/by-id/usb-..."   # evdev: /dev/input/by-id/...; tcp: host and port
# baud = 9600
# terminal = "Porte 1"                   # whose scans these are: a terminal's id or name
# environment = "live"
# answer = { green = '\xA0\x01\x01\xA2\p\xA0\x01\x00\xA1' }   # bytes sent back; \p waits 0.5 s
"""
