"""Receive webhooks: SERVICE_WEBHOOK_SECRET=whsec_… PORT=9000 python3 receiver.py"""

import hmac
import json
import os
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ["SERVICE_WEBHOOK_SECRET"].encode()
TOLERANCE_SECONDS = 300
BODY_MAX = 1_000_000

work = queue.Queue()
seen, seen_lock = set(), threading.Lock()  # in production: a unique column of your database


def is_genuine(signature, raw_body):
    """Checked on the raw bytes, before anything reads the JSON."""
    parts = [part.strip().partition("=")[::2] for part in signature.split(",")]
    t = next((value for name, value in parts if name == "t"), "")
    if not (t.isascii() and t.isdecimal()) or abs(time.time() - int(t)) > TOLERANCE_SECONDS:
        return False
    expected = hmac.new(SECRET, t.encode() + b"." + raw_body, "sha256").hexdigest().encode()
    # After a roll of the secret there are two v1 for a day: one that fits is enough.
    given = [value.encode() for name, value in parts if name == "v1"]
    return any(hmac.compare_digest(expected, value) for value in given)


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        raw_body = self.rfile.read(length) if length <= BODY_MAX else b""
        if not is_genuine(self.headers.get("X-Service-Signature", ""), raw_body):
            self.answer(400)
            return
        delivery = self.headers["X-Service-Delivery"]
        with seen_lock:
            is_new = delivery not in seen
            seen.add(delivery)
        if is_new:
            work.put(raw_body)
        self.answer(204)  # at once, for a duplicate too: the work comes afterwards

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def handle(event):
    """Your own work. Order is not guaranteed: go by `occurredAt` and the status."""
    about = event["data"].get("reservation") or event["data"].get("venue")  # of venue.updated
    print(event["id"], event["type"], about and about["status"], flush=True)


def do_the_work():
    while True:
        handle(json.loads(work.get()))


if __name__ == "__main__":
    threading.Thread(target=do_the_work, daemon=True).start()
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
