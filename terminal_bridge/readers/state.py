"""How each reader is: for `doctor`, the portal, and the log when it changes."""

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from appliance.clock import Clock, format_instant
from appliance.settings_readers import ReaderSettings

log = logging.getLogger(__name__)


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

    def to_wire(self) -> dict[str, Any]:
        """As JSON shows it: names in camelCase, timestamps of the interface."""
        values = asdict(self)
        for name in ("connected_since", "last_read_at"):
            values[name] = None if values[name] is None else format_instant(values[name])
        return {_camel(name): value for name, value in values.items()}


class Watch:
    """Keeps the state of one reader and logs what changes. Safe from the reader's own thread."""

    def __init__(
        self,
        settings: ReaderSettings,
        clock: Clock,
        on_change: Callable[[ReaderState], None] = lambda _: None,
    ) -> None:
        """`on_change` is told of troubles that begin and end, from whatever thread."""
        self._on_change = on_change
        self.state = ReaderState(
            settings.kind, settings.place, settings.terminal, settings.environment
        )
        self._clock = clock

    def connected(self) -> None:
        """The device is there, or the port is listened on."""
        self.state.connected_since = self._clock.now()
        self.state.trouble = None
        log.info("reader %s is connected", self._name)
        self._on_change(self.state)

    def disconnected(self, why: str) -> None:
        """The device is not there; said once, however often it is tried again."""
        was_there, known = self.state.connected_since is not None, self.state.trouble
        self.state.connected_since = None
        self.state.trouble = why
        if was_there or known != why:
            log.warning("reader %s: %s", self._name, why)
            self._on_change(self.state)

    def read(self) -> None:
        """A code was read."""
        self.state.last_read_at = self._clock.now()
        self.state.reads += 1

    def decided(self, trouble: str | None) -> None:
        """A code was decided, or could not be, for that reason."""
        known, self.state.trouble = self.state.trouble, trouble
        if trouble == known:
            return
        if trouble is not None:
            log.warning("reader %s: %s", self._name, trouble)
        self._on_change(self.state)

    def drop(self, why: str) -> None:
        """What came was no code."""
        self.state.dropped += 1
        self.state.trouble = why
        if self.state.dropped == 1:
            log.warning("reader %s: %s", self._name, why)

    @property
    def _name(self) -> str:
        return f"{self.state.kind} {self.state.place}"


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
