"""Run the programs of docs/partners/examples against a real box."""

import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.journeys.box_process import clean_environ, found_box
from tests.ports import held_port
from tests.readme import ROOT

EXAMPLES = ROOT / "docs" / "partners" / "examples"
NODE = ROOT / ".venv" / "bin" / "node"
DATE = f"{datetime.now(UTC) + timedelta(days=300):%Y-%m-%d}"  # a date that no other test books
PHONE = "+212 600 000 000"
PATIENCE = 60.0


@dataclass(frozen=True)
class Partner:
    """A partner in the test environment of a running box; its programs run in `folder`."""

    url: str
    key: str
    folder: Path

    def call(self, method, path, body=None):
        """Call the box; return (status, decoded body)."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        return post(self.url + path, data, headers, method)

    def run(self, *argv, more=None):
        """Run a program to its end."""
        return subprocess.run(
            [str(word) for word in argv],
            capture_output=True, text=True, check=False, cwd=self.folder, timeout=60,
            env=self.environ(more),
        )  # fmt: skip

    def book(self, *program, slot="19:30", phone=PHONE, reference):
        """Run a booking program to its end."""
        return self.run(*program, *wish(reference, slot, phone))

    def reservations(self, reference):
        """List the reservations whose reference has this prefix."""
        _, page = self.call("GET", f"/v1/reservations?from={DATE}&to={DATE}&limit=200")
        return [item for item in page["items"] if item.get("externalRef", "").startswith(reference)]

    def cancel(self, reference):
        """Cancel the reservations whose reference has this prefix."""
        for item in self.reservations(reference):
            assert self.call("DELETE", f"/v1/reservations/{item['id']}")[0] == 200

    def environ(self, more=None):
        """The environment variables of its programs."""
        return clean_environ({"SERVICE_URL": self.url, "SERVICE_KEY": self.key, **(more or {})})


def wish(reference, slot="19:30", phone=PHONE):
    """Return the command line arguments of a booking."""
    return (DATE, slot, "2", "Amina Idrissi", phone, reference)


def post(url, data, headers, method="POST"):
    """Send a POST; return (status, decoded body or None)."""
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - our own box
    try:
        with urllib.request.urlopen(request, timeout=15) as answer:  # noqa: S310 - as above
            raw = answer.read()
            return answer.status, json.loads(raw) if raw else None
    except urllib.error.HTTPError as refusal:
        with refusal:
            raw = refusal.read()
        try:
            return refusal.code, json.loads(raw) if raw else None
        except ValueError:
            return refusal.code, None


def eventually(look, *, seconds=PATIENCE):
    """Call `look` until it returns something; return that."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"nothing found in {seconds} s")


class ReceiverProgram:
    """A running receiver program of docs/partners/examples."""

    def __init__(self, port, secret, inbox, log):
        self.port = port
        self.secret = secret
        self._inbox = inbox
        self._log = log

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def handled(self):
        """Return the handled delivery ids in order, with repetitions."""
        kept = [path.stem for path in self._inbox.glob("*.json")]
        printed = [line.split() for line in self._log.read_text("utf-8").splitlines()]
        return kept + [words[0] for words in printed if len(words) == 3 and len(words[0]) == 36]

    def send(self, body, *, delivery, t=None, secret=None, signature=None):
        """Send a POST like the box's; return the status."""
        stamp = int(time.time()) if t is None else t
        signed = b"%d." % stamp + body
        digest = hmac.new((secret or self.secret).encode(), signed, "sha256").hexdigest()
        headers = {
            "Content-Type": "application/json",
            "X-Service-Event": "webhook.test",
            "X-Service-Delivery": delivery,
            "X-Service-Signature": signature or f"t={stamp},v1={digest}",
        }
        return post(self.url, body, headers)[0]


@contextmanager
def receiving(argv, tmp_path, *, port, secret):
    """Run a receiver: `argv` is its command line, with `{port}` as placeholder."""
    inbox, log = tmp_path / "inbox", tmp_path / "receiver.log"
    inbox.mkdir()
    environ = clean_environ(
        {"SERVICE_WEBHOOK_SECRET": secret, "PORT": str(port), "SERVICE_INBOX": str(inbox)}
    )
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word).format(port=port) for word in argv],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ,
            start_new_session=True,
        )  # fmt: skip
        try:
            eventually(lambda: process.poll() is not None or _listens(port))
            assert process.poll() is None, log.read_text("utf-8")
            yield ReceiverProgram(port, secret, inbox, log)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # node is a child process of its launcher
            process.wait()


def _listens(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def an_event(delivery, kind="webhook.test"):
    """Return a body as in section 2.9, with non-ASCII characters."""
    # fmt: off
    event = {"id": delivery, "type": kind, "occurredAt": "2026-11-21T19:00:00Z",
             "data": {"reservation": {"status": "confirmed", "customerFirstName": "Zoé"}}}
    # fmt: on
    return json.dumps(event, ensure_ascii=False).encode()


def check_receiver(partner, argv, tmp_path):
    """Check good, tampered, old and duplicate deliveries, and real ones from the box."""
    with (
        held_port() as port,
        _registered(partner, port) as endpoint,
        receiving(argv, tmp_path, port=port, secret=endpoint["secret"]) as receiver,
    ):
        _check_by_hand(receiver)
        _check_from_the_box(partner, endpoint, receiver)


@contextmanager
def _registered(partner, port):
    """Register an endpoint at that port; delete it at the end."""
    status, endpoint = partner.call(
        "POST", "/v1/webhooks", {"url": f"http://127.0.0.1:{port}/", "events": ["webhook.test"]}
    )
    assert status == 201, endpoint
    try:
        yield endpoint
    finally:
        partner.call("DELETE", f"/v1/webhooks/{endpoint['id']}")


def _check_by_hand(receiver):
    good, refused = str(uuid.uuid4()), str(uuid.uuid4())
    now = int(time.time())
    assert receiver.send(an_event(good), delivery=good) == 204
    assert receiver.send(an_event(good), delivery=good, t=now - 200) == 204

    body = an_event(refused)
    right = hmac.new(receiver.secret.encode(), b"%d." % now + body, "sha256").hexdigest()
    flipped = ("0" if right[0] != "0" else "1") + right[1:]
    assert receiver.send(body, delivery=refused, secret="whsec_another") == 400
    for signature in (
        f"t={now},v1={flipped}", f"t={now},v1={right[:-1]}", f"t={now}", f"v1={right}",
        f"t=x,v1={right}", f"t=-{now},v1={right}", "nonsense", f"t={now},v1=", "=,=,",
    ):  # fmt: skip
        assert receiver.send(body, delivery=refused, signature=signature) == 400, signature
    tampered = body.replace(b"confirmed", b"cancelled")
    for changed in (tampered, body + b" ", b""):
        headers = f"t={now},v1={right}"
        assert receiver.send(changed, delivery=refused, signature=headers) == 400
    for old in (now - 330, now + 330):
        assert receiver.send(body, delivery=refused, t=old) == 400
    rolled = str(uuid.uuid4())
    body = an_event(rolled)
    fits = hmac.new(receiver.secret.encode(), b"%d." % now + body, "sha256").hexdigest()
    two = f"t={now},v1={'0' * 64},v1={fits}"
    assert receiver.send(body, delivery=rolled, signature=two) == 204

    eventually(lambda: {good, rolled} <= set(receiver.handled()))
    assert sorted(receiver.handled()) == sorted([good, rolled])


def _check_from_the_box(partner, endpoint, receiver):
    sent = []
    for _ in range(3):
        status, queued = partner.call("POST", "/v1/webhooks/test", {"endpointId": endpoint["id"]})
        assert status == 202
        sent += queued["deliveryIds"]
    eventually(lambda: set(sent) <= set(receiver.handled()))
    assert all(receiver.handled().count(delivery) == 1 for delivery in sent)


def settings():
    """Return the settings that allow a receiver on this machine."""
    return {"VENUEBOX_WEBHOOKS_ALLOW_NETWORKS": "127.0.0.0/8"}


@contextmanager
def a_partner(folder, box_process):
    """Run a box with four tables; yield its test partner."""
    founded = found_box(folder)
    programs = folder / "programs"
    programs.mkdir()
    with box_process(founded.data, log=folder / "box.log", settings=settings()) as box:
        yield Partner(f"{box.address}/test", founded.keys["test"], programs)


def python():
    """Return the Python of these tests; the examples need only the standard library."""
    return (sys.executable, "-I", "-S")


def check_listening(partner, listen, receiver, folder):
    """Let `listen` take deliveries of the box to a handler that verifies them."""
    with held_port() as port, subprocess.Popen(
        [str(word) for word in (*listen, f"http://127.0.0.1:{port}/")],
        cwd=folder, env=partner.environ(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    ) as listening:  # fmt: skip
        try:
            name, _, secret = listening.stdout.readline().strip().partition("=")
            assert name == "export SERVICE_WEBHOOK_SECRET"
            with receiving(receiver, folder, port=port, secret=secret) as handler:
                for event_type in ("venue.updated", "reservation.updated", "webhook.test"):
                    done = subprocess.run(
                        [str(word) for word in (*listen, "trigger", event_type)], cwd=folder,
                        env=partner.environ(), capture_output=True, text=True, timeout=60,
                        check=False,
                    )  # fmt: skip
                    assert done.returncode == 0, done.stderr
                    assert listening.stdout.readline().split() == [event_type, "204"]
                eventually(lambda: len(handler.handled()) == 3)
        finally:
            listening.terminate()
