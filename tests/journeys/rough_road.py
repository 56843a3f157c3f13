"""A road to the box on which a booking's answer is lost, and the next try meets a busy house."""

import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Road(BaseHTTPRequestHandler):
    """Passes requests on; of the bookings the first loses its answer, the second meets a 503."""

    def do_GET(self):
        self._answer(*self._pass_on(None))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        bookings = self.server.bookings
        bookings.append(body)
        if len(bookings) == 1:
            assert self._pass_on(body)[0] == 201  # it was booked, and nobody hears of it
            self.connection.close()
        elif len(bookings) == 2:
            refusal = b'{"error": "", "error_en": "", "code": "UNAVAILABLE"}'
            self._answer(503, refusal, ("Retry-After", "1"))
        else:
            self._answer(*self._pass_on(body))

    def _pass_on(self, body):
        request = urllib.request.Request(self.server.target + self.path, body, method=self.command)  # noqa: S310
        for name in ("Authorization", "Content-Type"):
            request.add_header(name, self.headers[name])
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:  # noqa: S310 - our own box
                return answer.status, answer.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read()

    def _answer(self, status, body, *headers):
        self.send_response(status)
        for name, value in (("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """A test's output is its own."""


@contextmanager
def rough_road(target):
    """(address, bodies of the bookings that came by) of a road to `target`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Road)
    server.target, server.bookings = target, []
    server.handle_error = lambda *_: None
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.bookings
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
