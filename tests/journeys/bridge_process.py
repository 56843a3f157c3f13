"""`venuebox bridge` as a real process, with a scanner on a pseudo terminal."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import threading
from contextlib import suppress

import apsw

from tests.journeys.box_process import PROGRAM, clean_environ
from tests.ports import kept_port

READY_SECONDS = 60.0
STOP_SECONDS = 10.0
ANSWER_SECONDS = 15.0  # includes 2 s for the box
SETTINGS = """
[[readers]]
kind = "serial"
device = "{device}"
answer = {{ green = "G", amber = "A", red = "R", grey = "?" }}
"""


class Scanner:
    """A scanner that receives one letter for each colour."""

    def __init__(self):
        self._ours, self._theirs = os.openpty()
        os.set_blocking(self._ours, False)
        self.device = os.ttyname(self._theirs)

    async def show(self, code, seconds=ANSWER_SECONDS, is_vain=lambda: False):
        """Scan a code; return the letter that comes back, or None if none comes in time."""
        self._read()
        os.write(self._ours, f"{code}\r".encode())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (letters := self._read()) and not is_vain():  # noqa: ASYNC110 - a device
                    await asyncio.sleep(0.005)
                return letters.decode() or None
        return None

    def close(self):
        os.close(self._ours)
        os.close(self._theirs)

    def _read(self):
        with suppress(BlockingIOError):
            return os.read(self._ours, 4096)
        return b""


class BridgeProcess:
    """`venuebox bridge` as a process, killed at the end of the test."""

    def __init__(self, folder, scanner):
        self.data = folder
        self.log = folder / "bridge.log"
        self._process = None
        self._ready = threading.Event()
        folder.mkdir()
        (folder / "settings.toml").write_text(SETTINGS.format(device=scanner.device), "utf-8")

    def start(self, *argv):
        """Start it and wait for the `ready` line. `argv` pairs it at the first start."""
        self._ready.clear()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, "bridge", "--data", str(self.data), *argv],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=clean_environ(),
            )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        self._ready.wait(READY_SECONDS)
        assert self._process.poll() is None, self.complaints()
        assert self._ready.is_set(), self.complaints()

    def kill(self):
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def is_down(self):
        """Whether it is killed or not yet ready again."""
        return self._process.poll() is not None or not self._ready.is_set()

    def stop(self):
        """Stop it by SIGTERM; return its exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_SECONDS)

    def complaints(self):
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    async def is_told(self, words, times=1, seconds=30.0):
        """Wait until its log contains the text this many times."""
        async with asyncio.timeout(seconds):
            while self.complaints().count(words) < times:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)

    def spooled(self):
        """Wait until it has ended; return the rows of its spool."""
        return select(
            self.data / "spool.db", "SELECT scan_id, result, admitted, settled, remark FROM scan"
        )

    def _read(self, process):
        with process.stdout:
            for line in process.stdout:
                if line.startswith("ready "):
                    self._ready.set()
        self._ready.set()


def select(path, sql):
    """Query an SQLite file, which a running process may have open."""
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(10_000)
        return list(connection.execute(sql))
    finally:
        connection.close()


class Wire:
    """A proxy between the bridge and the box. While it is cut, it refuses connections."""

    def __init__(self, box, host="127.0.0.1"):
        self.host = host
        self._box = box
        self._port = kept_port(self)
        self._server = None
        self._talks = set()

    @property
    def address(self):
        return f"http://{self.host}:{self._port}"

    async def mend(self):
        if self._server is None:
            listening = socket.create_server((self.host, self._port))
            self._server = await asyncio.start_server(self._carry, sock=listening)

    async def cut(self):
        await self.close()

    async def close(self):
        if self._server is not None:
            self._server.close()
            self._server = None
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    async def _carry(self, reader, writer):
        talk = asyncio.current_task()
        self._talks.add(talk)
        there = None
        try:
            there = await asyncio.open_connection("127.0.0.1", self._box.port)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, there[1]))
                both.create_task(self._pump(there[0], writer))
        except (OSError, asyncio.CancelledError, ExceptionGroup):
            pass
        finally:
            self._talks.discard(talk)
            writer.close()
            if there is not None:
                there[1].close()

    async def _pump(self, reader, writer):
        try:
            while raw := await reader.read(65536):
                writer.write(raw)
                await writer.drain()
        finally:
            writer.close()


async def book(partner, door, session, box, count):
    """Book one-guest reservations for tonight; return (id, access code, pass) of each."""
    tables = (await partner.must(200, "GET", "/v1/venue"))["tables"][:count]
    evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
    guests = []
    for number, table in enumerate(tables):
        body = {
            "tableId": table["id"],
            "date": evening,
            "guests": 1,
            "customer": {"name": "Salma Bennani", "phone": "+212 600 000 001"},
            "idempotencyKey": f"bridge-{number}",
            "notifyCustomer": False,
        }
        booked = await partner.must(201, "POST", "/v1/reservations", body)
        link = re.sub(r"^https?://[^/]+", box.address, booked["guestAccessUrl"])
        async with session.get(link) as page:
            text = re.search(r'data-pass="([^"]*)"', await page.text())[1]
        guests.append((booked["serviceReservationId"], booked["accessCode"], text))
    return guests
