"""Fixtures for readers with a furnished box: settings, ports and simulated scanners."""

import os
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from appliance.core.scanner_settings import ReaderSettings
from terminal_bridge.scanners.at_box import readers_of
from tests.waiting import until


@asynccontextmanager
async def reading(box, **settings):
    """Start the box's readers with one reader that has these settings."""
    one = ReaderSettings(**{"terminal": "Porte 1"} | settings)
    readers = readers_of(replace(box, settings=replace(box.settings, readers=(one,))))
    await readers.start()
    try:
        yield readers
    finally:
        await readers.close()


class Scanner:
    """A scanner on a pseudo terminal. Its device is a link, as in /dev/serial/by-id."""

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
        """Return the next `count` bytes that the reader sent back."""
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
    """The port on which a line reader listens."""
    return unused_tcp_port


@pytest.fixture
def scanner(tmp_path):
    """A simulated scanner that is plugged in."""
    made = Scanner(tmp_path / "usb-scanner")
    made.plug()
    yield made
    made.unplug()
