"""Random headers, addresses and bodies on every route never cause a 500.

Each round can be repeated, because its number is the seed. `make soak` tries 60,000.
"""

import asyncio
import logging
import random
import re
from collections import Counter
from urllib.parse import quote, urlencode

import pytest

from appliance.door.terminals import issue_terminal
from appliance.staff.model import set_password
from tests.app.portal.people import a_person, hash_cheaply
from tests.builders import TONIGHT, a_body, table_id
from tests.soak.scale import FULL
from tests.waiting import within

ROUNDS = 60_000 if FULL else 400
TEXTS = (
    "", " ", "0", "-1", "1e9", "9" * 400, "a" * 3000, "é" * 9, "null", "true", "[]", "{}", "../..",
    "%00", "%ff", "\u0660", "\u202e", "'\"<>&;--", "=1+1", TONIGHT, "19:30", "2026-02-30",
    "0000-00-00", "9999-12-31", "0001-01-01", "24:00", table_id("T1"),
    "01890000-0000-7000-8000-000000000000", "T1", "SVC-4F7K", "on", "confirmed",
    "reservation.created", "https://[::1", "http://a@b:99999/", "T1-T9", "owner", "live",
    "fr;q=x", "*;q=1", "bytes=9-1", "multipart/form-data; boundary=",
)  # fmt: skip
HEADERS = (
    "Accept", "Accept-Language", "Authorization", "Content-Type", "Cookie", "Expect", "Host",
    "HX-Request", "HX-Target", "If-Modified-Since", "If-None-Match", "Last-Event-ID", "Origin",
    "Range", "Referer", "Sec-Fetch-Site", "User-Agent", "X-Forwarded-For", "X-Forwarded-Proto",
)  # fmt: skip
FIELDS = (
    "name", "number", "capacity_min", "capacity_max", "date", "from", "to", "slot", "start", "end",
    "guests", "page", "limit", "status", "q", "table", "tables", "text", "version", "days", "code",
    "scanId", "tableId", "customer", "idempotencyKey", "url", "events", "role", "password",
    "amount", "reason", "lang", "next", "seen", "order", "email", "phone", "notes", "at", "scans",
    "arrivals",
)  # fmt: skip


class Wild:
    """Draws one request, mostly valid and partly invalid."""

    def __init__(self, seed, routes, principals):
        self.draw = random.Random(seed)
        self.routes = routes
        self.principals = principals

    def text(self):
        if self.draw.random() < 0.7:
            return self.draw.choice(TEXTS)
        return "".join(chr(self.draw.choice((*range(1, 300), 0x661, 0x10FFFF))) for _ in range(9))

    def path(self, pattern):
        filled = re.sub(r"\{[^}]*\}", lambda _: quote(self.text(), safe="%") or "x", pattern)
        asked = {self.draw.choice(FIELDS): self.text() for _ in range(self.draw.randint(0, 3))}
        return f"{filled}?{urlencode(asked)}" if asked else filled

    def body(self):
        fields = {self.draw.choice(FIELDS): self.text() for _ in range(self.draw.randint(0, 8))}
        kind = self.draw.randint(0, 4)
        if kind == 0:
            return "application/json", str(fields).replace("'", '"').encode()
        if kind == 1:
            body = a_body(**{self.draw.choice(FIELDS): self.draw.choice([1, [], {}, "x", True])})
            return "application/json", repr(body).replace("'", '"').replace("True", "true").encode()
        if kind == 2:
            part = (
                f'--b\r\nContent-Disposition: form-data; name="text"\r\n\r\n{self.text()}\r\n--b--'
            )
            return "multipart/form-data; boundary=b", part.encode()
        if kind == 3:
            return "application/x-www-form-urlencoded", self.draw.randbytes(40)
        return "application/x-www-form-urlencoded", urlencode(fields).encode()

    def request(self):
        method, pattern = self.draw.choice(self.routes)
        kind, body = self.body()
        headers = {"Host": "localhost", "Content-Type": kind, "Sec-Fetch-Site": "same-origin"}
        headers |= self.draw.choice(self.principals)
        for name in self.draw.sample(HEADERS, self.draw.randint(0, 3)):
            value = self.text()
            headers[name] = f"{headers.get(name, '')}{value}" if self.draw.random() < 0.5 else value
        lines = [f"{method} {self.path(pattern)} HTTP/1.1"]
        one_line = {name: re.sub(r"[\x00-\x1f]", "", value) for name, value in headers.items()}
        lines += [f"{name}: {value}" for name, value in one_line.items()]
        lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
        return "\r\n".join(lines).encode("utf-8", "replace") + body


async def status_of(port, raw):
    """Return the status of the answer without reading its body, which may be endless."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(raw)
        async with within("an answer"):
            line = await reader.readline()
        return int(line.split()[1])
    finally:
        writer.close()


@pytest.mark.parametrize("rounds", [100, pytest.param(ROUNDS, marks=pytest.mark.slow)])
async def test_no_random_request_causes_an_internal_error(running, caplog, rounds):
    caplog.set_level(logging.WARNING)
    caplog.set_level(logging.CRITICAL, logger="aiohttp.server")  # tests/app/test_connection.py
    person = await a_person(running, "owner")
    cheap = hash_cheaply("none that is guessed")
    await running.live.database.write(set_password, person.id, cheap)
    _, token = await running.live.database.write(issue_terminal, "Front door", role="override")
    principals = [
        {},
        {"Cookie": f"__Host-venuebox-session={person.session.secret}"},  # as the Host has no port
        {"Authorization": f"Bearer {running.live_key}"},
        {"Authorization": f"Bearer {token}"},
    ]
    # Routes that end the session or the evening have their own tests.
    known = {
        (route.method, route.resource.canonical)
        for route in running.app.router.routes()
        if route.resource is not None
    }
    routes = sorted(route for route in known if not re.search("sign-out|restart", route[1]))

    accidents, statuses = [], Counter()
    for seed in range(rounds):
        raw = Wild(seed, routes, principals).request()
        status = await status_of(running.client.server.port, raw)
        statuses[status] += 1
        if status >= 500:
            accidents.append((seed, status, raw[:80]))

    assert accidents == [], caplog.text[-3000:]
    assert "failed" not in caplog.text
    assert {200, 400, 401, 404} <= set(statuses)  # they come further than the first look


@pytest.mark.parametrize(
    "path",
    [
        "/portal/tonight?date=0001-01-01",
        "/portal/tonight/rows?date=9999-12-31",
        "/portal/tonight/sheet?date=0001-01-01",
        "/portal/door/log/export?date=9999-12-31",
        f"/portal/reservations/new?guests={'9' * 5000}",
        "/portal/reservations/new?date=9999-12-31",
    ],
)
async def test_an_unlinked_address_causes_no_internal_error(running, path):
    owner = await a_person(running)

    status, _, _ = await owner.get(path)

    assert status in {200, 400}
