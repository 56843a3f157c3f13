"""`venuebox serve`, as a real process with real signals."""

import errno
import http.client
import json
import signal
import socket
import tempfile
import time

import pytest

from appliance.core.errors import OperatorError
from tests.app.processes import Serving
from tests.builders import a_body
from tests.journeys.box_process import STOP_SECONDS, found_box
from tests.quickest import quickest
from tests.unit.commands.conftest import VENUE
from web.listeners import listen
from web.main import main

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.fixture
def founded(tmp_path):
    """A new box with its keys."""
    return found_box(tmp_path)


@pytest.fixture
def data(founded):
    return founded.data


def serve(data):
    return Serving("--data", str(data), "--host", "127.0.0.1", "--port", "0")


def run(capsys, data, *argv):
    assert main([*argv, "--data", str(data)], {}) == 0
    return capsys.readouterr().out


def call(serving, method, path, key, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {key}"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def a_booking(venue):
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86_400 * 3))
    return a_body(tableId=venue["tables"][0]["id"], date=day, slot=None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_an_idle_box_with_status_0_and_intact_databases(data, number):
    def leave():
        with serve(data) as serving:
            asked = time.monotonic()
            serving.process.send_signal(number)
            assert serving.process.wait(timeout=60) == 0
            took = time.monotonic() - asked
            assert serving.complaint() == ""
            return took

    assert quickest(leave, 3) < 3
    assert sorted(path.name for path in data.glob("*.db*")) == ["live.db", "test.db"]


def begin_request(serving, key, body):
    """Send the head of a POST and half of its body; return (connection, other half)."""
    raw = json.dumps(body).encode()
    connection = socket.create_connection(("127.0.0.1", serving.port), timeout=60)
    head = (
        f"POST /v1/reservations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
    )
    connection.sendall(head.encode() + raw[:20])
    return connection, raw[20:]


def wait_until_refused(port):
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_a_running_request_is_finished_while_new_ones_are_refused(founded, data):
    key = founded.keys["live"]
    with serve(data) as serving:
        _, venue = call(serving, "GET", "/v1/venue", key)
        connection, rest = begin_request(serving, key, a_booking(venue))
        call(serving, "GET", "/v1/venue", key)  # sent later, so the box has read the first request

        serving.process.send_signal(signal.SIGTERM)
        assert wait_until_refused(serving.port)
        serving.process.send_signal(signal.SIGTERM)  # a second signal must not shorten the wait
        time.sleep(0.1)
        connection.sendall(rest)
        answer = connection.recv(65536)
        connection.close()

        assert answer.startswith(b"HTTP/1.1 201")
        assert b"Connection: close" in answer
        assert serving.process.wait(timeout=60) == 0

    with serve(data) as serving:
        _, listed = call(serving, "GET", "/v1/reservations", key)
    assert listed["total"] == 1


def test_a_request_that_never_ends_does_not_prevent_the_box_from_stopping(founded, data):
    key = founded.keys["live"]
    with serve(data) as serving:
        connection, _ = begin_request(serving, key, {"a": "b" * 100})
        call(serving, "GET", "/v1/venue", key)  # sent later, so the box has read the first request

        took = serving.terminate()

        connection.close()
        assert serving.process.returncode == 0
        assert 4 < took < STOP_SECONDS


def test_a_second_process_on_the_same_data_directory_is_refused(data):
    with serve(data) as first:
        second = serve(data)
        assert second.process.wait(timeout=60) == 1
        sentence = second.complaint()
        second.close()

        assert "another venuebox already uses" in sentence
        assert sentence.count("\n") == 1
        assert first.process.poll() is None


def test_a_privileged_port_is_reported_with_the_port_to_forward(monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)

    with pytest.raises(OperatorError, match="8443"):
        listen("127.0.0.1", 443, "server.tls_port")


def test_a_port_in_use_is_reported_in_one_sentence(data):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        serving = Serving("--data", str(data), "--host", "127.0.0.1", "--port", str(port))
        assert serving.process.wait(timeout=60) == 1
        sentence = serving.complaint()
        serving.close()

    assert f"cannot listen on 127.0.0.1:{port}" in sentence
    assert sentence.count("\n") == 1


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(lambda data: (data / "secrets" / "master.key").unlink(), "Restore a backup"),
     (lambda data: (data / "secrets" / "master.key").chmod(0o644), "chmod 600"),
     (lambda data: (data / "live.db").unlink(), "live.db is missing")],
)  # fmt: skip
def test_missing_or_exposed_files_stop_the_start_with_a_remedy(
    data, capsys, monkeypatch, spoil, said
):
    monkeypatch.setattr(tempfile, "tempdir", None)  # `serve` changes it for the whole process
    spoil(data)
    status = main(["serve", "--data", str(data), "--host", "127.0.0.1", "--port", "0"], {})
    complaint = capsys.readouterr().err
    assert status == 1
    assert said in complaint
    assert complaint.count("\n") == 1


def test_changes_made_by_commands_apply_to_the_next_request(founded, data, capsys):
    with serve(data) as serving:
        wanted = ("--environment", "live", "--name", "N", "--json")
        created = json.loads(run(capsys, data, "key", "create", *wanted))
        assert call(serving, "GET", "/v1/venue", created["key"])[0] == 200

        run(capsys, data, "key", "revoke", created["id"])
        status, refusal = call(serving, "GET", "/v1/venue", created["key"])
        assert (status, refusal["code"]) == (401, "KEY_REVOKED")

        changed = data.parent / "venue.toml"
        changed.write_text(VENUE.replace("Riad Atlas", "Riad Toubkal"), "utf-8")
        run(capsys, data, "venue", "apply", str(changed))
        status, venue = call(serving, "GET", "/test/v1/venue", founded.keys["test"])
        assert (status, venue["venue"]["name"]) == (200, "Riad Toubkal")
