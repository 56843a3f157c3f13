"""From what a device sends to what was read: one code ends with CR, LF, Tab or a pause."""

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
