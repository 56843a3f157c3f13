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
        for number, part in enumerate(parts):
            if number:
                time.sleep(ANSWER_PAUSE_SECONDS)
            if part:
                self._port.write(part)

    def close(self) -> None:  # noqa: D102 - as above
        self._port.close()


def open_serial(settings: ReaderSettings) -> SerialScanner:
    """The scanner at `settings.device`, by its present meaning: a by-id path is a link."""
    port = serial.Serial(
        settings.device,
        settings.baud,
        timeout=0,
        write_timeout=_WRITTEN_WITHIN,
        exclusive=True,
    )
    try:
        port.reset_input_buffer()  # half a code of before the box started is none
    except Exception as error:
        port.close()
        raise OSError(errno.ENODEV, "the device is gone") from error
    return SerialScanner(port)
