"""Personal data and secrets are planted everywhere, and searched for where they must not be."""

import json
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import apsw
import pytest

from tests.app.processes import Serving
from tests.app.test_connection import new_box
from web.main import main

GUEST = {
    "name": "Zqxanthe Wvuillermoz",
    "email": "zqxanthe@canary.example",
    "phone": "+212 699 424 242",
}
PERSONAL = ("zqxanthe", "wvuillermoz", "canary.example", "699 424 242", "699424242", "zqxsafran")
DATABASES = ("live.db", "test.db")  # where the guests are kept, with -wal and -shm
pytestmark = [pytest.mark.slow, pytest.mark.process]
ACCIDENT = "ALTER TABLE reservation RENAME COLUMN notes TO gone"


class House:
    """A box in its own process, and its secrets, which must not appear anywhere."""

    def __init__(self, data, serving, capsys):
        self.data = data
        self.serving = serving
        self.capsys = capsys
        self.secrets = []
        self.seen = ""

    def command(self, *argv):
        """Return the JSON that a command prints."""
        self.capsys.readouterr()
        status = main([*argv, "--data", str(self.data), "--json"], {})
        out, err = self.capsys.readouterr()
        self.seen += err
        return status, json.loads(out)

    def call(self, method, path, token=None, body=None, **headers):
        """Return (status, text) of an answer. The token that was sent must not appear anywhere."""
        data = None if body is None else json.dumps(body).encode()
        headers |= {"Content-Type": "application/json"}
        if token:
            self.secrets.append(token)
            headers["Authorization"] = f"Bearer {token}"
        url = f"http://127.0.0.1:{self.serving.port}{path}"
        request = urllib.request.Request(url, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - the box
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()

    def written(self):
        """Return every file that is not a database, and both outputs of the ended process."""
        files = [path for path in self.data.rglob("*") if path.is_file() and not path.is_symlink()]
        texts = [p.read_bytes() for p in files if not p.name.startswith(DATABASES)]
        said = self.serving.complaint() + "\n".join(self.serving.lines)
        return b"\n".join(texts).decode("utf-8", "replace") + said


@pytest.fixture
def house(tmp_path, capsys):
    data = new_box(tmp_path)
    ways = ("--host", "127.0.0.1", "--port", "0")
    with Serving("--data", str(data), *ways, environ={"VENUEBOX_MAIL_HOST": ""}) as serving:
        yield House(data, serving, capsys)


def in_days(days):
    return (datetime.now(UTC) + timedelta(days=days)).date().isoformat()


def a_wish(house, key):
    _, venue = house.call("GET", "/v1/venue", key)
    return {
        "tableId": json.loads(venue)["tables"][0]["id"],
        "date": in_days(30),
        "guests": 2,
        "customer": GUEST,
        "notes": "sans zqxsafran",
        "externalRef": "zqxref",
        "idempotencyKey": "zqxkey",
    }


def live_a_little(house):
    """Make bookings, errors, endpoints, page views and scans with planted data."""
    _, issued = house.command("key", "create", "--environment", "live", "--name", "Partner")
    _, terminal = house.command("terminal", "create", "--environment", "live", "--name", "Door")
    key, token = issued["key"], terminal["token"]
    wish = a_wish(house, key)

    status, booked = house.call("POST", "/v1/reservations", key, wish)
    assert status == 201
    many = {**wish, "idempotencyKey": "zqxmany", "guests": 99}
    assert house.call("POST", "/v1/reservations", key, many)[0] == 400
    taken = {**wish, "idempotencyKey": "zqxother"}
    assert house.call("POST", "/v1/reservations", key, taken)[0] == 409
    assert house.call("POST", "/v1/reservations", "svc_live_" + "c0ffee11" * 6, wish)[0] == 401
    assert house.call("GET", "/v1/reservations?status=zqxanthe", key)[0] == 400
    told = json.loads(booked)
    links = [told[name].rpartition("/")[2] for name in ("guestAccessUrl", "claimUrl")]
    house.secrets += links
    assert house.call("GET", f"/access/{links[0]}")[0] == 200
    assert house.call("GET", f"/access/x{links[0]}")[0] == 404
    assert house.call("GET", f"/claim-guest/{links[1]}")[0] == 200
    receiver = {"url": "https://zqxreceiver.invalid/hook?for=zqxsafran"}
    status, registered = house.call("POST", "/v1/webhooks", key, receiver)
    assert status == 201
    house.secrets.append(json.loads(registered)["secret"])
    house.call("POST", "/v1/webhooks/test", key, {})
    for code in (links[0], "Zqxanthe", told["accessCode"]):
        scan = {"scanId": f"zqx-{len(code)}", "code": code}
        assert house.call("POST", "/terminal/v1/scans", token, scan)[0] == 200
    return key, wish


def test_planted_secrets_and_personal_data_appear_in_no_log_metric_or_error_report(house):
    key, wish = live_a_little(house)
    database = apsw.Connection(str(house.data / "live.db"))
    database.set_busy_timeout(5000)
    database.execute(ACCIDENT)
    database.close()
    fresh = {**wish, "date": in_days(31), "idempotencyKey": "zqxlast"}

    accident = house.call("POST", "/v1/reservations", key, fresh)
    metrics = house.call("GET", "/metrics")
    examined = json.dumps(house.command("doctor")[1])
    house.serving.terminate()

    assert accident[0] == 500
    assert metrics[0] == 200
    written = house.written()
    assert "failed: SQLError" in written, "the accident was noted"
    planted = [it.lower() for it in (*PERSONAL, *house.secrets)]
    for text in map(str.lower, (accident[1], metrics[1], examined, house.seen, written)):
        assert [it for it in planted if it in text] == []
    kept = b"".join(p.read_bytes() for p in house.data.glob("live.db*")).decode("utf-8", "replace")
    assert all(name in kept for name in ("Zqxanthe Wvuillermoz", "+212 699 424 242", "zqxsafran"))
    assert not any(secret in kept for secret in house.secrets if not secret.startswith("zqx"))
