"""A serial or USB-CDC scanner, and the light, buzzer or relay behind the same line."""

import errno
import time
from collections.abc import Sequence

import serial

from appliance.settings_readers import ReaderSettings
from terminal_bridge.readers.lines import Lines

ANSWER_PAUSE_SECONDS = 0.5
_WRITTEN_WITHIN = 1.0


class SerialScanner:
    """A port that is open and ours alone."""

    def __init__(self, port: serial.Serial) -> None:
        self._port = port
        self._lines = Lines()

    @property
    def dropped(self) -> str:  # noqa: D102 - promised by Device
        return self._lines.dropped

    @property
    def is_waiting(self) -> bool:  # noqa: D102 - as above
        return self._lines.is_waiting

    def fileno(self) -> int:  # noqa: D102 - as above
        return int(self._port.fileno())

    def read(self, raw: bytes) -> list[str]:  # noqa: D102 - as above
        return self._lines.feed(raw)

    def pause(self) -> list[str]:  # noqa: D102 - as above
        return self._lines.pause()

    def answer(self, parts: Sequence[bytes]) -> None:
        """OSError when the device does not take them within a second."""
        _write(self._port, parts)

    def close(self) -> None:  # noqa: D102 - as above
        self._port.close()


def open_serial(settings: ReaderSettings) -> SerialScanner:
    """The scanner at `settings.device`, by its present meaning: a by-id path is a link."""
    port = _open(settings.device, settings.baud)
    try:
        port.reset_input_buffer()  # half a code of before the box started is none
    except Exception as error:
        port.close()
        raise OSError(errno.ENODEV, "the device is gone") from error
    return SerialScanner(port)


class SerialRelay:
    """A port that is only written to: opened for the first answer, and again after a failure."""

    def __init__(self, settings: ReaderSettings) -> None:
        self._settings = settings
        self._port: serial.Serial | None = None

    def answer(self, parts: Sequence[bytes]) -> None:
        """OSError when it is not there; the next answer looks for it again."""
        if not any(parts):
            return
        try:
            if self._port is None:
                self._port = _open(self._settings.answer_device, self._settings.answer_baud)
            _write(self._port, parts)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the port."""
        port, self._port = self._port, None
        if port is not None:
            port.close()


def _open(path: str, baud: int) -> serial.Serial:
    return serial.Serial(path, baud, timeout=0, write_timeout=_WRITTEN_WITHIN, exclusive=True)


def _write(port: serial.Serial, parts: Sequence[bytes]) -> None:
    for number, part in enumerate(parts):
        if number:
            time.sleep(ANSWER_PAUSE_SECONDS)
        if part:
            port.write(part)
