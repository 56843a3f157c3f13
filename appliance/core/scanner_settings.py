"""The `[[readers]]` tables in settings.toml. Each table configures one scanner."""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from appliance.core.declared_settings import check_setting, checked, one_of, within
from appliance.core.errors import OperatorError

KINDS = ("serial", "evdev", "tcp")
COLOURS = ("green", "amber", "red", "grey")
ENVIRONMENTS = ("live", "test")
_BAUDS = (1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200)
_ESCAPES = {"r": b"\r", "n": b"\n", "t": b"\t", "a": b"\a", "\\": b"\\"}
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.?))", re.DOTALL)
_AT_A_PORT = ("serial", "evdev")
_ANSWER_BYTES = 256
_LONGEST_TEXT = 200


def _text(default: str, **more: object) -> Any:
    allowed = f"text of 1 to {_LONGEST_TEXT} characters"
    return checked(default, allowed, lambda text: 1 <= len(text) <= _LONGEST_TEXT, **more)


def _path(**more: object) -> Any:
    return checked("", "a path such as /dev/serial/by-id/…", _is_path, **more)


def _is_path(text: str) -> bool:
    return text.startswith("/") and len(text) <= _LONGEST_TEXT


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """The settings of one scanner.

    `terminal` is the id or the name of the terminal that receives the scans. `answer` maps a
    verdict's colour to the bytes to send back, in parts that are sent half a second apart.
    The bytes go to the scanner or, if `answer_device` is set, to a relay on that serial port. If a
    code is scanned again within 3 s, the bytes are sent again, except those for green, which may
    open a turnstile. With `repeat_answer`, the bytes for green are sent again too.
    """

    # A setting applies only to the kinds of scanners in `kinds`. A setting is required if it has
    # `missing`, which completes the error message.
    kind: str = one_of("", *KINDS)
    terminal: str = _text("", missing="the id or the name of the terminal that receives the scans")
    environment: str = one_of("live", *ENVIRONMENTS)
    device: str = _path(
        kinds=_AT_A_PORT,
        missing="the path of the scanner, preferably in /dev/serial/by-id or /dev/input/by-id",
    )
    baud: int = one_of(9600, *_BAUDS, kinds=("serial",))
    host: str = _text("127.0.0.1", kinds=("tcp",))
    port: int = within(0, 1, 65535, kinds=("tcp",), missing="the port to listen on, 1 to 65535")
    answer: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)
    answer_device: str = _path(kinds=_AT_A_PORT)
    answer_baud: int = one_of(9600, *_BAUDS, kinds=_AT_A_PORT)
    repeat_answer: bool = False

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
        item.name: item
        for item in dataclasses.fields(ReaderSettings)
        if (kind not in KINDS or kind in item.metadata.get("kinds", KINDS))
        and not (on_a_bridge and item.name in {"terminal", "environment"})
    }
    hints = get_type_hints(ReaderSettings) | {"answer": dict}
    values: dict[str, Any] = {}
    for name, given in ({"kind": kind} | dict(table)).items():
        if name not in known:
            raise OperatorError(f"unknown setting {where}.{name}. Use one of {', '.join(known)}.")
        value = given.strip() if isinstance(given, str) else given
        values[name] = check_setting(f"{where}.{name}", hints[name], known[name], value)
    for name, item in known.items():
        if name not in values and "missing" in item.metadata:
            raise OperatorError(f"{where}.{name} is missing. Set it to {item.metadata['missing']}.")
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
