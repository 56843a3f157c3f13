"""Readers over a furnished box: settings for one, and patience for threads and devices."""

import os
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from appliance.core.scanner_settings import ReaderSettings
from terminal_bridge.scanners.at_box import readers_of
from tests.waiting import until


@asynccontextmanager
async def reading(box, **settings):
    """The box's readers, started: one, of these settings."""
    one = ReaderSettings(**{"terminal": "Porte 1"} | settings)
    readers = readers_of(replace(box, settings=replace(box.settings, readers=(one,))))
    await readers.start()
    try:
        yield readers
    finally:
        await readers.close()


class Scanner:
    """A scanner on a pseudo terminal: its device is a link, as below /dev/serial/by-id."""

    def __init__(self, link):
        self.link = link
        self._ours = self._theirs = None

    def plug(self):
        self._ours, self._theirs = os.openpty()
        os.set_blocking(self._ours, False)
        aside = self.link.with_name("aside")
        aside.symlink_to(os.ttyname(self._theirs))
        aside.replace(self.link)

    def unplug(self):
        if self._ours is not None:
            os.close(self._ours)
            os.close(self._theirs)
            self.link.unlink()
            self._ours = None

    def send(self, text):
        os.write(self._ours, text if isinstance(text, bytes) else text.encode())

    async def received(self, count):
        """The next `count` bytes that came back."""
        found = b""

        def more():
            nonlocal found
            with suppress(BlockingIOError):
                found += os.read(self._ours, 4096)
            return len(found) >= count

        await until(more)
        return found


@pytest.fixture
def port(unused_tcp_port):
    """Where a reader of lines is to listen."""
    return unused_tcp_port


@pytest.fixture
def scanner(tmp_path):
    """A scanner that is plugged in."""
    made = Scanner(tmp_path / "usb-scanner")
    made.plug()
    yield made
    made.unplug()
