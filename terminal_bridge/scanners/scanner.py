"""Code shared by all scanner types: line parsing, answers and state."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from appliance.clock import Clock
from appliance.core.scanner_settings import ReaderSettings

log = logging.getLogger(__name__)


class Undecided(Exception):
    """Raised if a scan cannot be decided. The message says what the operator must fix."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a scan. `party` is "arrived/guests", or "" if there is no reservation.

    `is_repeated` is true if the same code was scanned less than 3 s ago and its answer is reused.
    """

    colour: str
    result: str
    table: str = ""
    party: str = ""
    sentence: str = ""
    is_repeated: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, verdict: Mapping[str, Any]) -> Self:
        """Convert a verdict from `POST /scans` into an answer.

        Raises KeyError, TypeError or AttributeError if a member is missing or has the wrong type.
        """
        reservation = verdict.get("reservation") or {}
        table = (reservation.get("table") or {}).get("name") or ""
        party = f"{reservation['arrived']}/{reservation['guests']}" if reservation else ""
        sentence = (verdict.get("say") or {}).get("staff") or ""
        return cls(verdict["colour"], verdict["result"], table, party, sentence)


Decide = Callable[[str], Coroutine[Any, Any, Answer]]
ARRIVALS = 1  # people admitted per scan, because a turnstile lets one person through at a time
TROUBLE = Answer("grey", "error", sentence="Incident : scannez de nouveau.")


def line_of(answer: Answer, *, is_same: bool = False) -> bytes:
    """Format an answer as a line of five fields, e.g. `GREEN checked_in T5 1/4 Entrée validée…`.

    The fields are separated by spaces. The first is the colour, or `SAME` for a reused answer.
    Spaces in the table name become `_`; `-` marks an empty field. Only the last field, the
    sentence for the staff, may contain spaces. The line is UTF-8 and ends with CR LF.
    """
    fields = (
        "SAME" if is_same else answer.colour.upper(),
        answer.result,
        "_".join(answer.table.split()) or "-",
        answer.party or "-",
        " ".join(answer.sentence.split()) or "-",
    )
    return f"{' '.join(fields)}\r\n".encode("utf-8", "replace")


class Watch:
    """One scanner's state, and the log of its faults. May be changed from the scanner's thread.

    Times are in ms since 1970. `connected_since` is None while the device is absent. `trouble` is
    the current fault, if any.
    """

    def __init__(
        self, settings: ReaderSettings, clock: Clock,
        on_change: Callable[["Watch"], None] = lambda _: None,
    ) -> None:  # fmt: skip
        """Create the state. `on_change` is called, in any thread, when a fault begins or ends."""
        self.settings = settings
        self.connected_since: int | None = None
        self.last_read_at: int | None = None
        self.reads = 0
        self.dropped = 0
        self.trouble: str | None = None
        self._clock = clock
        self._on_change = on_change

    def connected(self) -> None:
        """Record that the device is connected, or that the port is open."""
        self.connected_since = self._clock.now()
        log.info("scanner: %s %s: connected", self.settings.kind, self.settings.place)
        self.decided(None)

    def disconnected(self, why: str) -> None:
        """Record that the device is absent. The same reason is not logged twice in a row."""
        self.connected_since = None
        self.decided(why)

    def read(self) -> None:
        """Record that a code was read."""
        self.last_read_at = self._clock.now()
        self.reads += 1

    def decided(self, trouble: str | None) -> None:
        """Set the current fault to `trouble`, or clear it if `trouble` is None."""
        if self._set_trouble(trouble):
            self._on_change(self)

    def drop(self, why: str) -> None:
        """Record that input was dropped. The reason `why` becomes the current fault."""
        self.dropped += 1
        self._set_trouble(why)

    def _set_trouble(self, trouble: str | None) -> bool:
        known, self.trouble = self.trouble, trouble
        if trouble and trouble != known:
            log.warning("scanner: %s %s: %s", self.settings.kind, self.settings.place, trouble)
        return trouble != known


PAUSE_SECONDS = 0.5  # a gap this long ends a code
ANSWER_PAUSE_SECONDS = 0.5  # pause between two parts of an answer
FIRST_WAIT, LONGEST_WAIT = 0.25, 5.0  # seconds between attempts to open a device or port
CODE_MAX = 2048  # in characters, the same limit as for `POST /scans`
SHORTEST_BY_PAUSE = 4  # in characters; shorter input before a pause is dropped as stray keystrokes
_ENDS = b"\r\n\t"
_FRAMES = b"\x00\x02\x03"  # some scanners send NUL after power-up, or STX and ETX around a code


class Lines:
    """Splits a byte stream into codes. Drops unreadable and overlong input."""

    def __init__(self) -> None:
        self.dropped = ""
        self._bytes = bytearray()
        self._overlong = False

    @property
    def is_waiting(self) -> bool:
        """Whether part of a code is buffered.

        If no more input follows for a moment, the caller should end the code with `pause`.
        """
        return bool(self._bytes) or self._overlong

    def feed(self, raw: bytes) -> list[str]:
        """Return the codes that `raw` completes. Sets `dropped` to the reason if input is lost."""
        found = []
        self.dropped = ""
        for byte in raw:
            if byte in _ENDS:
                found += self._end()
            elif len(self._bytes) >= CODE_MAX:
                self._overlong = True
                self._bytes.clear()
            elif not self._overlong and byte not in _FRAMES:
                self._bytes.append(byte)
        return found

    def pause(self) -> list[str]:
        """End the current code after a pause of PAUSE_SECONDS. Return it unless it is too short."""
        self.dropped = ""
        if len(self._bytes) < SHORTEST_BY_PAUSE:
            self._bytes.clear()
        return self._end()

    def _end(self) -> list[str]:
        raw, overlong = bytes(self._bytes), self._overlong
        self._bytes.clear()
        self._overlong = False
        if overlong:
            self.dropped = f"input longer than {CODE_MAX} characters was dropped"
            return []
        try:
            text = raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            self.dropped = "unreadable input was dropped. Check the baud rate"
            return []
        if not text.isprintable():
            self.dropped = "input with control characters was dropped"
            return []
        return [text] if text else []
