"""The drill in a venue's network: a phone takes over and scans, the old box comes back."""

import http.client
import json
import os
import ssl
import subprocess
import time
import urllib.parse
import uuid

import pytest

from appliance.backup.recovery_key import find_recovery_key
from appliance.backup.targets import ensure_sftp_key
from appliance.core.data_directory import DataDirectory
from tests.journeys.backup_servers import an_sftp_server
from tests.journeys.box_process import PROGRAM, BoxProcess, clean_environ, found_box
from tests.journeys.standby_process import SSH_KEY, StandbyProcess, admit
from tests.namespaces import Venue, ip, may_build_a_venue, within

__test__ = may_build_a_venue()
PATIENCE, DRILL_SECONDS = 60.0, 180.0
SPARE, COMES_BACK = "192.168.77.30", "192.168.77.21"


@pytest.fixture
def venue():
    with Venue(f"vbs{os.getpid() % 10**6}") as built:
        yield built


def at(network):
    """Return the command that runs another one in that network."""
    return ("ip", "netns", "exec", network)


class Phone:
    """A phone in the venue, which trusts the box's authority once it has asked for it."""

    def __init__(self, venue):
        self._venue, self._trusted = venue, None

    def trust(self):
        der = self._send(f"http://{Venue.BOX}:8080/trust/ca.crt", "GET", None, {})[1]
        pem = ssl.DER_cert_to_PEM_cert(der)
        self._trusted = ssl.create_default_context(cadata=pem)

    def call(self, method, path, body=None, token=""):
        """Call the box over https at its address; return (status, decoded body)."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        url = f"https://{Venue.BOX}:8443{path}"
        status, answer = self._send(url, method, body and json.dumps(body), headers)
        return status, json.loads(answer)

    def must(self, status, *args):
        found, answer = self.call(*args)
        assert found == status, answer
        return answer

    def tap(self, **fields):
        """Send the form of the standby's page; return the status."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        url = f"http://{SPARE}:8080/take-over"
        return self._send(url, "POST", urllib.parse.urlencode(fields), headers)[0]

    def health(self, address):
        """Return the status of `/health` there; 0 without an answer."""
        try:
            return self._send(f"http://{address}:8080/health", "GET", None, {})[0]
        except OSError:
            return 0

    def _send(self, *args):
        return within(self._venue.phone, self._send_here, *args)

    def _send_here(self, url, method, body, headers):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme == "https":
            connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=20, context=self._trusted
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
        try:
            connection.request(method, parts.path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def until(condition):
    """Wait until it holds; return the last value."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def a_booking(phone, founded, number):
    """Book a table for tonight; return the answer."""
    evening = phone.must(200, "GET", "/terminal/v1/me", None, founded.terminals["live"])["evening"]
    key = founded.keys["live"]
    table = phone.must(200, "GET", "/v1/venue", None, key)["tables"][number]
    body = {
        "tableId": table["id"], "date": evening, "guests": 2, "notifyCustomer": False,
        "customer": {"name": "Salma", "phone": "0600000001"}, "idempotencyKey": str(number),
    }  # fmt: skip
    return phone.must(201, "POST", "/v1/reservations", body, key)


def scan(phone, founded, code):
    """Scan at the box's address; return the verdict, or None without an answer."""
    body = {"scanId": str(uuid.uuid4()), "code": code}
    try:
        status, answer = phone.call("POST", "/terminal/v1/scans", body, founded.terminals["live"])
    except OSError:
        return None
    return answer["result"] if status == 200 else None


def test_a_phone_takes_over_and_scans_at_the_old_address(venue, tmp_path):
    spare, phone, founded = venue.add_machine("x", SPARE), Phone(venue), found_box(tmp_path)
    server = an_sftp_server(tmp_path / "sshd", 22)
    server.host, server.wrapper = Venue.STRANGER, at(venue.stranger)
    admit(server, ensure_sftp_key(DataDirectory(founded.data)))
    (founded.data / "settings.toml").write_text(f'[backup]\ntarget = "{server.url}"\n')
    box = BoxProcess(founded.data, log=tmp_path / "box.log", wrapper=at(venue.box))
    standby = StandbyProcess(tmp_path / "standby", log=tmp_path / "log", wrapper=at(spare))
    try:
        with server.running():
            box.spawn("--data", str(founded.data))
            box.wait_until_ready()
            phone.trust()
            code = a_booking(phone, founded, 0)["accessCode"]
            for argv in (["backup"], ["backup", "target"]):
                command = [*at(venue.box), PROGRAM, *argv, "--data", founded.data]
                subprocess.run(command, check=True, capture_output=True, env=clean_environ())
            key = find_recovery_key(DataDirectory(founded.data)).text
            standby.spawn("--from", server.url, "--key", key, "--data", str(standby.data))
            admit(server, standby.wait_until_told(SSH_KEY))
            until(lambda: phone.health(SPARE) == 200)
            typed = standby.told(r".* page: (\d+)")
            assert phone.tap(code=typed, off="yes") == 409, "the box answers"

            dead = time.monotonic()
            box.kill()
            ip("-n", venue.box, "link", "set", "dev", "eth", "down")
            phone.tap(code=typed)
            assert phone.tap(code=typed, off="yes") == 200
            ip("-n", spare, "address", "add", f"{Venue.BOX}/24", "dev", "eth")
            verdict = until(lambda: scan(phone, founded, code))
            seconds = time.monotonic() - dead

            print(f"\nfrom the dead box to the first scan over https: {seconds:.1f} s")
            assert verdict == "checked_in"
            assert seconds < DRILL_SECONDS

        ip("-n", venue.box, "addr", "flush", "dev", "eth")
        ip("-n", venue.box, "addr", "add", f"{COMES_BACK}/24", "dev", "eth")
        ip("-n", venue.box, "link", "set", "dev", "eth", "up")
        box.spawn("--data", str(founded.data))
        assert box.wait(PATIENCE) == 1, "the target is away, so only mDNS tells"
        assert scan(phone, founded, code) == "already_checked_in"
    finally:
        standby.kill()
        box.kill()
