"""Proxies in front of the box that record, damage answers, or hold requests."""

import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Passed:
    """A request that the box answered."""

    method: str
    body: bytes | None
    status: int
    headers: Message  # headers of the response


class _Road(BaseHTTPRequestHandler):
    """Forward requests to the box."""

    def do_GET(self):
        self._answer(*self._pass_on(None))

    def do_POST(self):
        self._answer(*self._pass_on(self._body()))

    def _body(self):
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _pass_on(self, body):
        request = urllib.request.Request(self.server.target + self.path, body, method=self.command)  # noqa: S310
        for name in ("Authorization", "Content-Type"):
            request.add_header(name, self.headers[name])
        try:
            answer = urllib.request.urlopen(request, timeout=15)  # noqa: S310 - our own box
        except urllib.error.HTTPError as refusal:
            answer = refusal
        with answer:
            self.server.passed.append(Passed(self.command, body, answer.status, answer.headers))
            return answer.status, answer.read()

    def _answer(self, status, body, *headers):
        self.send_response(status)
        for name, value in (("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Log nothing."""


class _SpoilingRoad(_Road):
    """Damage the answers to the first bookings, each in a different way."""

    def do_POST(self):
        body = self._body()
        bookings, spoilers = self.server.bookings, self.server.spoilers
        bookings.append(body)
        spoiler = spoilers[len(bookings) - 1] if len(bookings) <= len(spoilers) else None
        if spoiler == "busy":
            refusal = b'{"error": "", "error_en": "", "code": "UNAVAILABLE"}'
            self._answer(503, refusal, ("Retry-After", "1"))
        elif spoiler == "proxy":
            page = b"<html><h1>Bad gateway</h1></html>"
            self._answer(502, page, ("Content-Type", "text/html"))
        else:
            status, answer = self._pass_on(body)
            if spoiler is None:
                self._answer(status, answer)
                return
            assert status == 201  # booked, but the program gets no answer
            if spoiler == "half":
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer[: len(answer) // 2])
            self.close_connection = True


class _DeadEnd(_Road):
    """Hold bookings without an answer until the proxy closes; forward them only if allowed."""

    def do_POST(self):
        body = self._body()
        if self.server.arrives:
            assert self._pass_on(body)[0] == 201
        self.server.bookings.append(body)
        self.server.gone.wait()


@contextmanager
def watched_road(target):
    """Run a recording proxy to `target`; yield (URL, requests so far)."""
    with _serving(_Road, target) as server:
        yield _address(server), server.passed


@contextmanager
def spoiling_road(target, spoilers):
    """Run a damaging proxy to `target`; yield (URL, bodies of the bookings).

    The answers to the first bookings are "lost", cut in "half", replaced by a "busy" box's, or by
    a "proxy"'s.
    """
    with _serving(_SpoilingRoad, target) as server:
        server.spoilers = spoilers
        yield _address(server), server.bookings


@contextmanager
def dead_end(target, *, arrives):
    """Run a proxy that never answers; yield (URL, bodies of the held bookings)."""
    with _serving(_DeadEnd, target) as server:
        server.arrives = arrives
        yield _address(server), server.bookings


@contextmanager
def _serving(road, target):
    server = ThreadingHTTPServer(("127.0.0.1", 0), road)
    server.target, server.bookings, server.passed = target, [], []
    server.gone = threading.Event()
    server.handle_error = lambda *_: None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.gone.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _address(server):
    return f"http://127.0.0.1:{server.server_port}"
