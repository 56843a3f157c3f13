"""Mail servers with scripted replies, and helpers that wait for the email worker."""

import asyncio
import contextlib

from aiosmtpd.smtp import SMTP

from appliance.email.smtp import Undelivered
from appliance.reservations.email_queue import Outcome
from tests.waiting import until


async def settle(email_worker):
    """Wait until the worker is idle."""
    await until(lambda: email_worker._round is None)


async def pass_time(email_worker, clock, seconds):
    """Advance the clock by `seconds`, and wait until the emails due by then are sent."""
    clock.advance(seconds)
    email_worker.wake()
    await settle(email_worker)


class Mailbox:
    """A fake mail server that stores the messages, or fails as the test has set it."""

    def __init__(self):
        self.messages = []
        self.sending = 0
        self.knocks = 0
        self.hopeless = None  # the id of an email that breaks every connection
        self.fault = None
        self.most_at_once = 0
        self.trouble = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, message):
        self.sending += 1
        self.knocks += 1
        self.most_at_once = max(self.most_at_once, self.sending)
        try:
            await self.gate.wait()
            if self.fault is not None:
                raise self.fault
            if self.trouble is not None:
                raise Undelivered(self.trouble)
            if self.hopeless is not None and self.hopeless in message["Message-ID"]:
                raise Undelivered(Outcome("unreachable", "the connection was lost"))
            self.messages.append(message)
        finally:
            self.sending -= 1

    def close(self):
        """Close the connection."""

    def refuse(self, result, trouble="because"):
        self.trouble = Outcome(result, trouble)

    def accept(self):
        self.trouble = None


class Handler:
    """Replies at each stage of a session as a real SMTP server would."""

    def __init__(self):
        self.envelopes = []
        self.sessions = []  # the session of each envelope
        self.connections = set()  # the open connections
        self.rcpt = "250 OK"
        self.data = "250 OK"
        self.mail = "250 OK"

    async def handle_MAIL(self, _server, _session, envelope, address, options):  # noqa: N802
        if self.mail.startswith("2"):
            envelope.mail_from = address
            envelope.mail_options.extend(options)
        return self.mail

    async def handle_RCPT(self, _server, _session, envelope, address, _options):  # noqa: N802
        if self.rcpt.startswith("2"):
            envelope.rcpt_tos.append(address)
        return self.rcpt

    async def handle_DATA(self, _server, session, envelope):  # noqa: N802
        if self.data.startswith("2"):
            self.envelopes.append(envelope)
            self.sessions.append(session)
        return self.data


class Connection(SMTP):
    """A connection that is listed in its handler while it is open."""

    def connection_made(self, transport):
        self.event_handler.connections.add(self)
        super().connection_made(transport)

    def connection_lost(self, error):
        super().connection_lost(error)
        self.event_handler.connections.discard(self)


@contextlib.asynccontextmanager
async def smtp_server(handler=None, **options):
    """Run a real SMTP server on loopback: `async with smtp_server() as (port, handler)`."""
    handler = handler or Handler()
    options = {"enable_SMTPUTF8": True, "hostname": "mx.example"} | options
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(handler, loop=loop, **options), "127.0.0.1", 0
    )
    try:
        yield server.sockets[0].getsockname()[1], handler
    finally:
        server.close()
        for connection in handler.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # let the connections close before the event loop does


async def converse(reader, writer, *, until):
    """Speak SMTP as a server up to a step: greeting, mail, data, body, accepted."""
    writer.write(b"220 mx.example\r\n")
    if until == "greeting":
        return
    while line := await reader.readline():
        command = line.split()[0].upper()
        if command == b"DATA":
            if until == "data":
                return
            writer.write(b"354 go on\r\n")
            if until == "body":
                await reader.read(100)
                return
            await reader.readuntil(b"\r\n.\r\n")
            writer.write(b"250 taken\r\n")
        elif command == b"QUIT":
            await asyncio.sleep(30)
        else:
            writer.write(b"250 OK\r\n")
