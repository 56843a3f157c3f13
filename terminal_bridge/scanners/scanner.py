"""Code shared by all scanners: line parsing, answers and state."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from appliance.clock import Clock
from appliance.core.scanner_settings import ReaderSettings

log = logging.getLogger(__name__)


class Undecided(Exception):
    """The scan was not decided. The message names the reason, which the operator can fix."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a scan. `party` is arrived/guests, "" without a reservation.

    `is_repeated`: the same code was scanned less than 3 s ago, and its answer is reused.
    """

    colour: str
    result: str
    table: str = ""
    party: str = ""
    sentence: str = ""
    is_repeated: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, verdict: Mapping[str, Any]) -> Self:
        """Convert a verdict of `POST /scans`. Raises KeyError, TypeError or AttributeError.

        These errors mean that the verdict lacks a member, or has one of another type.
        """
        reservation = verdict.get("reservation") or {}
        table = (reservation.get("table") or {}).get("name") or ""
        party = f"{reservation['arrived']}/{reservation['guests']}" if reservation else ""
        sentence = (verdict.get("say") or {}).get("staff") or ""
        return cls(verdict["colour"], verdict["result"], table, party, sentence)


Decide = Callable[[str], Coroutine[Any, Any, Answer]]
ARRIVALS = 1  # people per scan: a turnstile admits one
TROUBLE = Answer("grey", "error", sentence="Incident : scannez de nouveau.")


def line_of(answer: Answer, *, is_same: bool = False) -> bytes:
    """Format `GREEN checked_in T5 1/4 Entrée validée…`: five fields separated by spaces.

    The first field is the colour, or `SAME` for a reused answer. Spaces in the table name become
    `_`; `-` means no table or no party. Only the fifth field, the sentence for the staff, may
    contain spaces. The line is UTF-8 and ends with CR LF.
    """
    fields = (
        "SAME" if is_same else answer.colour.upper(),
        answer.result,
        "_".join(answer.table.split()) or "-",
        answer.party or "-",
        " ".join(answer.sentence.split()) or "-",
    )
    return f"{' '.join(fields)}\r\n".encode("utf-8", "replace")


@dataclass(slots=True)
class ReaderState:
    """State of one scanner. Instants are ms since 1970; `trouble` is the current fault or None.

    `connected_since` is None while the device is absent.
    """

    kind: str
    place: str
    terminal: str
    environment: str
    connected_since: int | None = None
    last_read_at: int | None = None
    reads: int = 0
    dropped: int = 0
    trouble: str | None = None


class Watch:
    """Tracks the state of one scanner and logs changes. Safe to call from its thread."""

    def __init__(
        self, settings: ReaderSettings, clock: Clock,
        on_change: Callable[[ReaderState], None] = lambda _: None,
    ) -> None:  # fmt: skip
        """`on_change` is called, in any thread, when a fault begins or ends."""
        self.settings = settings
        self.state = ReaderState(
            settings.kind, settings.place, settings.terminal, settings.environment
        )
        self._clock = clock
        self._on_change = on_change

    def connected(self) -> None:
        """Record that the device is connected or the port is listening."""
        self.state.connected_since = self._clock.now()
        log.info("scanner: %s %s: connected", self.state.kind, self.state.place)
        self.decided(None)

    def disconnected(self, why: str) -> None:
        """Record that the device is absent; repeated calls with one reason are logged once."""
        self.state.connected_since = None
        self.decided(why)

    def read(self) -> None:
        """Record that a code was read."""
        self.state.last_read_at = self._clock.now()
        self.state.reads += 1

    def decided(self, trouble: str | None) -> None:
        """Record that a code was decided, or that it was not, for the reason `trouble`."""
        if self._set_trouble(trouble):
            self._on_change(self.state)

    def drop(self, why: str) -> None:
        """Record that input was dropped, for the reason `why`."""
        self.state.dropped += 1
        self._set_trouble(why)

    def _set_trouble(self, trouble: str | None) -> bool:
        known, self.state.trouble = self.state.trouble, trouble
        if trouble and trouble != known:
            log.warning("scanner: %s %s: %s", self.state.kind, self.state.place, trouble)
        return trouble != known


PAUSE_SECONDS = 0.5  # of silence end a code
ANSWER_PAUSE_SECONDS = 0.5  # between two parts of an answer
FIRST_WAIT, LONGEST_WAIT = 0.25, 5.0  # seconds before a device or port is opened again
CODE_MAX = 2048  # characters, as in `POST /scans`
SHORTEST_BY_PAUSE = 4  # shorter input before a pause is dropped as stray key presses
_ENDS = b"\r\n\t"
_FRAMES = b"\x00\x02\x03"  # NUL after power-up, STX and ETX around a code


class Lines:
    """Assembles bytes into codes. Drops garbage and overlong input."""

    def __init__(self) -> None:
        self.dropped = ""
        self._bytes = bytearray()
        self._overlong = False

    @property
    def is_waiting(self) -> bool:
        """Whether an unfinished code is buffered, which a pause would end."""
        return bool(self._bytes) or self._overlong

    def feed(self, raw: bytes) -> list[str]:
        """Return the codes that `raw` completes; `dropped` is then the reason for lost input."""
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
        """Return the code that a pause of PAUSE_SECONDS completes; drop it if too short."""
        self.dropped = ""
        if len(self._bytes) < SHORTEST_BY_PAUSE:
            self._bytes.clear()
        return self._end()

    def _end(self) -> list[str]:
        raw, overlong = bytes(self._bytes), self._overlong
        self._bytes.clear()
        self._overlong = False
        if overlong:
            self.dropped = f"input longer than {CODE_MAX} characters dropped"
            return []
        try:
            text = raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            self.dropped = "unreadable input dropped: check the baud rate"
            return []
        if not text.isprintable():
            self.dropped = "input with control characters dropped"
            return []
        return [text] if text else []
