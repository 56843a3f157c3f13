"""What every scanner shares: lines, the answer to a scan, and its state."""

import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from appliance.clock import Clock
from appliance.core.scanner_settings import ReaderSettings

log = logging.getLogger(__name__)


class Undecided(Exception):
    """A scan cannot be decided, for a reason that the operator can correct."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verdict comes to. `party` is arrived/guests; "" where nobody is meant.

    `is_repeated`: the same code was shown a moment ago, and nothing was decided anew.
    """

    colour: str
    result: str
    table: str = ""
    party: str = ""
    sentence: str = ""
    is_repeated: bool = field(default=False, compare=False)


Decide = Callable[[str], Coroutine[Any, Any, Answer]]
ARRIVALS = 1  # a reading lets one person in: a turnstile opens for one
TROUBLE = Answer("grey", "error", sentence="Incident : scannez de nouveau.")


def answer_of(verdict: Mapping[str, Any]) -> Answer:
    """The answer that a verdict of the wire stands for."""
    reservation = verdict.get("reservation") or {}
    say = verdict.get("say") or {}
    return Answer(
        colour=verdict["colour"],
        result=verdict["result"],
        table=(reservation.get("table") or {}).get("name") or "",
        party=f"{reservation['arrived']}/{reservation['guests']}" if reservation else "",
        sentence=say.get("staff") or "",
    )


def line_of(answer: Answer, *, is_same: bool = False) -> bytes:
    """`GREEN checked_in T5 1/4 Entrée validée…`: five fields, a space between two.

    The first is `SAME` in place of the colour when nothing was decided anew. Spaces in the
    table's name are written `_`; `-` stands for no table and for no party. Only the fifth
    field, the sentence for the staff, has spaces. UTF-8, ended by CR LF.
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
    """One reader. Instants are ms since 1970; `trouble` is the last, None while all is well.

    `connected_since` is None while its device is absent.
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
    """Keeps the state of one reader and logs what changes. Safe from the reader's own thread."""

    def __init__(
        self,
        settings: ReaderSettings,
        clock: Clock,
        on_change: Callable[[ReaderState], None] = lambda _: None,
    ) -> None:
        """`on_change` is called when a trouble begins or ends, from whatever thread."""
        self._on_change = on_change
        self.settings = settings
        self.state = ReaderState(
            settings.kind, settings.place, settings.terminal, settings.environment
        )
        self._clock = clock

    def connected(self) -> None:
        """The device is there, or the port is listened on."""
        self.state.connected_since = self._clock.now()
        log.info("reader %s %s is connected", self.state.kind, self.state.place)
        self.decided(None)

    def disconnected(self, why: str) -> None:
        """The device is not there; logged once, however often it is tried again."""
        self.state.connected_since = None
        self.decided(why)

    def read(self) -> None:
        """A code was read."""
        self.state.last_read_at = self._clock.now()
        self.state.reads += 1

    def decided(self, trouble: str | None) -> None:
        """A code was decided, or could not be, for that reason."""
        if self._set_trouble(trouble):
            self._on_change(self.state)

    def drop(self, why: str) -> None:
        """What came was no code."""
        self.state.dropped += 1
        self._set_trouble(why)

    def _set_trouble(self, trouble: str | None) -> bool:
        known, self.state.trouble = self.state.trouble, trouble
        if trouble and trouble != known:
            log.warning("reader %s %s: %s", self.state.kind, self.state.place, trouble)
        return trouble != known


PAUSE_SECONDS = 0.5
CODE_MAX = 2048  # characters, as in `POST /scans`
_SHORTEST_BY_PAUSE = 4  # a key pressed by mistake is no code
_ENDS = b"\r\n\t"
_FRAMES = b"\x00\x02\x03"  # NUL of a device that woke up, STX and ETX around a code


class Lines:
    """Puts bytes together until a code is whole. Garbage and overlong input is dropped."""

    def __init__(self) -> None:
        self.dropped = ""
        self._bytes = bytearray()
        self._overlong = False

    @property
    def is_waiting(self) -> bool:
        """Whether a code has begun that a pause would end."""
        return bool(self._bytes) or self._overlong

    def feed(self, raw: bytes) -> list[str]:
        """The codes that `raw` completes. `dropped` then says why something was not one."""
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
        """Nothing more came for PAUSE_SECONDS: that ends a code too, unless it is too short."""
        self.dropped = ""
        if len(self._bytes) < _SHORTEST_BY_PAUSE:
            self._bytes.clear()
        return self._end()

    def _end(self) -> list[str]:
        raw, overlong = bytes(self._bytes), self._overlong
        self._bytes.clear()
        self._overlong = False
        if overlong:
            self.dropped = f"something longer than {CODE_MAX} characters was read and dropped"
            return []
        try:
            text = raw.decode("utf-8").strip()
        except UnicodeDecodeError:
            self.dropped = "something unreadable came and was dropped: check the baud rate"
            return []
        if not text.isprintable():
            self.dropped = "something with control characters came and was dropped"
            return []
        return [text] if text else []
