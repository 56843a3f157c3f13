"""The program to compare with: the same booking in a simple implementation.

aiohttp, the standard library's sqlite3 (WAL, synchronous=FULL), one transaction a request, and an
outbox worker with aiohttp's client. It checks and answers like the box, writes the
same rows (reservation, history, event, delivery; then attempt and state) and signs the same
webhook. It has no other features of the box.

Run as `python -m bench.plain PORT DATABASE`; `prepare` makes the database from a prepared box.
"""

import asyncio
import datetime as dt
import hashlib
import hmac
import json
import re
import secrets
import sqlite3
import sys
import time
import uuid
from pathlib import Path
from zoneinfo import ZoneInfo

import aiohttp
from aiohttp import web

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE venue (status TEXT, time_zone TEXT, evening_ends_at TEXT, name TEXT, id TEXT);
CREATE TABLE venue_table (id TEXT PRIMARY KEY, name TEXT, capacity_min INT, capacity_max INT,
    bookable INT);
CREATE TABLE slot (start TEXT, "end" TEXT, days_of_week TEXT);
CREATE TABLE closing_day (first_day TEXT, last_day TEXT);
CREATE TABLE api_key (id TEXT PRIMARY KEY, hash BLOB UNIQUE, scopes TEXT, revoked_at INT);
CREATE TABLE endpoint (id TEXT PRIMARY KEY, url TEXT, events TEXT, active INT, secret TEXT);
CREATE TABLE reservation (id TEXT PRIMARY KEY, status TEXT, source TEXT,
    table_id TEXT REFERENCES venue_table (id), date TEXT, slot TEXT, starts INT, ends INT,
    guests INT, customer_name TEXT, customer_email TEXT, customer_phone TEXT, notes TEXT,
    access_code TEXT UNIQUE, pass_id BLOB UNIQUE, checked_in_at INT, link_expires_at INT,
    created_at INT, updated_at INT, external_ref TEXT, key_id TEXT, idempotency_key TEXT,
    request_hash BLOB, email_outcome TEXT, UNIQUE (key_id, idempotency_key));
CREATE INDEX reservation_by_table ON reservation (date, table_id);
CREATE TABLE history (seq INTEGER PRIMARY KEY, reservation_id TEXT, at INT, what TEXT, actor TEXT);
CREATE INDEX history_by_reservation ON history (reservation_id);
CREATE TABLE event (seq INTEGER PRIMARY KEY, type TEXT, reservation_id TEXT, occurred_at INT);
CREATE TABLE delivery (id TEXT PRIMARY KEY, endpoint_id TEXT, event_seq INT, state TEXT,
    attempts INT, due_at INT, finished_at INT);
CREATE INDEX delivery_due ON delivery (state, due_at);
CREATE TABLE attempt (delivery_id TEXT, n INT, at INT, duration_ms INT, outcome TEXT,
    http_status INT, PRIMARY KEY (delivery_id, n));
"""
RETRIES = (60, 300, 1_800, 7_200, 43_200)
IN_FLIGHT = 6
ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
LINK_KEY = bytes(32)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_SLOT = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


class Refused(Exception):
    """A refusal of the interface."""

    def __init__(self, status: int, code: str) -> None:
        self.status, self.code = status, code


class Plain:
    """The application: one connection, one transaction a request."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute("PRAGMA foreign_keys = ON")
        self.calls: dict[str, list[float]] = {}
        self.wake = asyncio.Event()
        self.sending: set[str] = set()

    def one(self, sql: str, *values: object) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self.db.execute(sql, values).fetchone()
        return row

    def authenticate(self, request: web.Request, scope: str) -> sqlite3.Row:
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        digest = hashlib.sha256(key.strip().encode()).digest()
        row = self.one("SELECT * FROM api_key WHERE hash = ?", digest)
        if scheme.lower() != "bearer" or row is None:
            raise Refused(401, "UNAUTHORIZED")
        if row["revoked_at"] is not None:
            raise Refused(401, "KEY_REVOKED")
        now, calls = time.monotonic(), self.calls.setdefault(row["id"], [])
        while calls and calls[0] < now - 60:
            calls.pop(0)
        if len(calls) >= 100_000_000:  # the benchmark disables this limit
            raise Refused(429, "RATE_LIMITED")
        calls.append(now)
        del calls[:-60]  # the limit of the interface needs only these
        if scope not in row["scopes"].split():
            raise Refused(403, "SCOPE_MISSING")
        return row

    async def book(self, request: web.Request) -> web.Response:
        """`POST /v1/reservations`."""
        try:
            key = self.authenticate(request, "reservations:write")
            body = await request.read()
            wish = parse(body)
            self.db.execute("BEGIN IMMEDIATE")
            try:
                row, replayed = self.reserve(key["id"], wish)
            except BaseException:
                self.db.execute("ROLLBACK")
                raise
            self.db.execute("COMMIT")
        except Refused as refused:
            return web.json_response(
                {"error": refused.code, "error_en": refused.code, "code": refused.code},
                status=refused.status,
            )
        self.wake.set()
        answer = {
            "serviceReservationId": row["id"],
            "accessCode": row["access_code"],
            "status": "confirmed",
            "guestAccessUrl": f"https://box.example/access/{_link('access', row['id'])}",
            "claimUrl": f"https://box.example/claim-guest/{_link('claim', row['id'])}",
            "accessLinkExpiresAt": _timestamp(row["link_expires_at"]),
            "notifications": {"email": row["email_outcome"], "sms": "skipped"},
        }
        if replayed:
            return web.json_response(answer, headers={"Idempotent-Replayed": "true"})
        return web.json_response(answer, status=201)

    def reserve(self, key_id: str, wish: dict[str, object]) -> tuple[sqlite3.Row, bool]:
        """Run the transaction of one booking, except its COMMIT."""
        earlier = self.one(
            "SELECT * FROM reservation WHERE key_id = ? AND idempotency_key = ?",
            key_id, wish["idempotencyKey"],
        )  # fmt: skip
        if earlier is not None:
            return earlier, True
        venue = self.one("SELECT * FROM venue")
        if venue is None or venue["status"] != "active":
            raise Refused(409, "VENUE_INACTIVE")
        date = str(wish["date"])
        if self.one("SELECT 1 FROM closing_day WHERE ? BETWEEN first_day AND last_day", date):
            raise Refused(409, "VENUE_INACTIVE")
        table = self.one("SELECT * FROM venue_table WHERE id = ?", wish["tableId"])
        if table is None:
            raise Refused(404, "TABLE_NOT_FOUND")
        if not table["bookable"]:
            raise Refused(409, "TABLE_NOT_BOOKABLE")
        if not table["capacity_min"] <= int(str(wish["guests"])) <= table["capacity_max"]:
            raise Refused(400, "GUESTS_OUT_OF_RANGE")
        starts, ends = self.interval(wish["slot"], dt.date.fromisoformat(date))
        zone = ZoneInfo(venue["time_zone"])
        here = dt.datetime.now(zone)
        if f"{here:%H:%M}" < venue["evening_ends_at"]:
            here -= dt.timedelta(days=1)
        last = here.date() + dt.timedelta(days=730)
        if not here.date() <= dt.date.fromisoformat(date) <= last:
            raise Refused(400, "INVALID_DATE")
        held = self.one(
            "SELECT 1 FROM reservation WHERE date = ? AND table_id = ? AND status NOT IN "
            "('cancelled', 'declined') AND starts < ? AND ? < ends",
            date, wish["tableId"], ends, starts,
        )  # fmt: skip
        if held:
            raise Refused(409, "TABLE_TAKEN")
        code = self.fresh_code()
        now = int(time.time() * 1000)
        noon = dt.datetime.combine(dt.date.fromisoformat(date), dt.time(12), zone)
        row = {
            "id": str(uuid.uuid4()), "status": "confirmed", "source": "partner",
            "table_id": wish["tableId"], "date": date, "slot": wish["slot"], "starts": starts,
            "ends": ends, "guests": wish["guests"], "customer_name": wish["name"],
            "customer_email": wish["email"], "customer_phone": wish["phone"],
            "notes": wish["notes"], "access_code": code, "pass_id": secrets.token_bytes(8),
            "link_expires_at": int((noon + dt.timedelta(days=1)).timestamp() * 1000),
            "created_at": now, "updated_at": now, "external_ref": wish["externalRef"],
            "key_id": key_id, "idempotency_key": wish["idempotencyKey"],
            "request_hash": hashlib.sha256(repr(sorted(wish.items())).encode()).digest(),
            "email_outcome": "skipped",
        }  # fmt: skip
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self.db.execute(f"INSERT INTO reservation ({names}) VALUES ({marks})", tuple(row.values()))
        self.db.execute(
            "INSERT INTO history (reservation_id, at, what, actor) VALUES (?, ?, 'created', ?)",
            (row["id"], now, f"key:{key_id}"),
        )
        event = self.db.execute(
            "INSERT INTO event (type, reservation_id, occurred_at) "
            "VALUES ('reservation.created', ?, ?)",
            (row["id"], now),
        )
        for endpoint in self.db.execute("SELECT id, events FROM endpoint WHERE active = 1"):
            if "reservation.created" in json.loads(endpoint["events"]):
                self.db.execute(
                    "INSERT INTO delivery VALUES (?, ?, ?, 'pending', 0, ?, NULL)",
                    (str(uuid.uuid4()), endpoint["id"], event.lastrowid, now),
                )
        stored = self.one("SELECT * FROM reservation WHERE id = ?", row["id"])
        assert stored is not None
        return stored, False

    def interval(self, slot: object, date: dt.date) -> tuple[int, int]:
        """Return the minutes for which the table is held."""
        if slot is None:
            return 0, 2880
        for each in self.db.execute("SELECT * FROM slot WHERE start = ?", (slot,)):
            if date.isoweekday() % 7 in json.loads(each["days_of_week"]):
                starts, ends = _minutes(each["start"]), _minutes(each["end"])
                return starts, ends if ends > starts else ends + 1440
        raise Refused(400, "INVALID_SLOT")

    def fresh_code(self) -> str:
        while True:
            code = "SVC-" + "".join(secrets.choice(ALPHABET) for _ in range(4))
            if not self.one("SELECT 1 FROM reservation WHERE access_code = ?", code):
                return code

    async def work(self, session: aiohttp.ClientSession) -> None:
        """The outbox worker: sends due deliveries, at most six at a time."""
        tasks: set[asyncio.Task[None]] = set()
        while True:
            room = IN_FLIGHT - len(tasks)
            due = (
                []
                if not room
                else self.db.execute(
                    "SELECT delivery.id, delivery.attempts, url, secret, type, occurred_at, "
                    "reservation_id FROM delivery JOIN event ON event.seq = event_seq "
                    "JOIN endpoint ON endpoint.id = endpoint_id "
                    "WHERE state = 'pending' AND due_at <= ? ORDER BY due_at LIMIT ?",
                    (int(time.time() * 1000), 2 * IN_FLIGHT),
                ).fetchall()
            )
            for row in [row for row in due if row["id"] not in self.sending][:room]:
                self.sending.add(row["id"])
                tasks.add(asyncio.create_task(self.deliver(session, row)))
            self.wake.clear()
            waker = asyncio.create_task(self.wake.wait())
            await asyncio.wait({waker, *tasks}, timeout=1, return_when=asyncio.FIRST_COMPLETED)
            waker.cancel()
            tasks = {task for task in tasks if not task.done()}

    async def deliver(self, session: aiohttp.ClientSession, row: sqlite3.Row) -> None:
        """Make one attempt and store its outcome."""
        began, at, status = time.monotonic(), int(time.time() * 1000), None
        body = json.dumps(self.event_body(row), ensure_ascii=False).encode()
        t = at // 1000
        signature = hmac.new(row["secret"].encode(), f"{t}.".encode() + body, "sha256").hexdigest()
        headers = {
            "Content-Type": "application/json",
            "X-Service-Event": row["type"],
            "X-Service-Delivery": row["id"],
            "X-Service-Signature": f"t={t},v1={signature}",
        }
        try:
            async with asyncio.timeout(10):
                async with session.post(
                    row["url"], data=body, headers=headers, allow_redirects=False
                ) as response:
                    status = response.status
            outcome = "delivered" if 200 <= status < 300 else f"http_{status}"
        except (aiohttp.ClientError, TimeoutError) as error:
            outcome = type(error).__name__
        n = row["attempts"] + 1
        now = int(time.time() * 1000)
        state = "delivered" if outcome == "delivered" else "pending" if n <= 5 else "dead"
        due = now + RETRIES[n - 1] * 1000 if state == "pending" else now
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute(
            "INSERT INTO attempt VALUES (?, ?, ?, ?, ?, ?)",
            (row["id"], n, at, round((time.monotonic() - began) * 1000), outcome, status),
        )
        self.db.execute(
            "UPDATE delivery SET state = ?, attempts = ?, due_at = ?, finished_at = ? WHERE id = ?",
            (state, n, due, now if state != "pending" else None, row["id"]),
        )
        self.db.execute("COMMIT")
        self.sending.discard(row["id"])

    def event_body(self, row: sqlite3.Row) -> dict[str, object]:
        """Return the body (interface, section 2.9) with the current state of the reservation."""
        found = self.one(
            "SELECT reservation.*, venue_table.name AS table_name FROM reservation "
            "JOIN venue_table ON venue_table.id = table_id WHERE reservation.id = ?",
            row["reservation_id"],
        )
        venue = self.one("SELECT id, name FROM venue")
        assert found is not None
        assert venue is not None
        return {
            "id": row["id"],
            "type": row["type"],
            "occurredAt": _timestamp(row["occurred_at"]),
            "data": {
                "reservation": {
                    "serviceReservationId": found["id"],
                    "accessCode": found["access_code"],
                    "status": found["status"],
                    "date": found["date"],
                    "slot": found["slot"],
                    "table": {"id": found["table_id"], "name": found["table_name"]},
                    "guests": found["guests"],
                    "customerFirstName": (found["customer_name"] or "").split(" ")[0],
                    "source": found["source"],
                    "externalRef": found["external_ref"],
                    "checkedInAt": found["checked_in_at"],
                    "venue": {"id": venue["id"], "name": venue["name"]},
                    "createdAt": _timestamp(found["created_at"]),
                    "updatedAt": _timestamp(found["updated_at"]),
                }
            },
        }


def parse(body: bytes) -> dict[str, object]:
    """Return the booking. Raises the 400s of the interface in its order."""
    try:
        wish = json.loads(body)
    except ValueError:
        raise Refused(400, "INVALID_JSON") from None
    if not isinstance(wish, dict):
        raise Refused(400, "INVALID_JSON")
    try:
        dt.date.fromisoformat(wish["date"])
    except (KeyError, TypeError, ValueError):
        raise Refused(400, "INVALID_DATE") from None
    slot = wish.get("slot")
    if slot is not None and not (isinstance(slot, str) and _SLOT.fullmatch(slot)):
        raise Refused(400, "INVALID_SLOT")
    try:
        table = str(uuid.UUID(wish["tableId"]))
    except (KeyError, AttributeError, TypeError, ValueError):
        raise Refused(400, "INVALID_TABLE") from None
    guests = wish.get("guests")
    if not isinstance(guests, int) or isinstance(guests, bool) or guests < 1:
        raise Refused(400, "INVALID_GUESTS")
    customer = wish.get("customer")
    if not isinstance(customer, dict) or not str(customer.get("name") or "").strip():
        raise Refused(400, "CUSTOMER_NAME_REQUIRED")
    email, phone = customer.get("email") or None, customer.get("phone") or None
    if email is None and phone is None:
        raise Refused(400, "CUSTOMER_CONTACT_REQUIRED")
    if email is not None and not (isinstance(email, str) and _EMAIL.fullmatch(email)):
        raise Refused(400, "INVALID_EMAIL")
    key = wish.get("idempotencyKey")
    if not isinstance(key, str) or not key.strip():
        raise Refused(400, "IDEMPOTENCY_KEY_REQUIRED")
    notes, ref = wish.get("notes"), wish.get("externalRef")
    if len(str(notes or "")) > 500 or len(str(ref or "")) > 120 or len(key) > 120:
        raise Refused(400, "VALIDATION_ERROR")
    return {
        "date": wish["date"], "slot": slot, "tableId": table, "guests": guests,
        "name": customer["name"].strip(), "email": email, "phone": phone, "notes": notes,
        "externalRef": ref, "idempotencyKey": key,
    }  # fmt: skip


def prepare(box: Path, target: Path, key: str, receiver: str) -> None:
    """Make the peer's database from a prepared, stopped box."""
    target.mkdir()
    db = sqlite3.connect(target / "plain.db")
    db.executescript(SCHEMA)
    db.execute("ATTACH ? AS box", (str(box / "live.db"),))
    for table, columns in (
        ("venue", "status, time_zone, evening_ends_at, name, id"),
        ("venue_table", "id, name, capacity_min, capacity_max, bookable"),
        ("slot", 'start, "end", days_of_week'),
        ("closing_day", "first_day, last_day"),
    ):
        db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM box.{table}")
    db.execute(
        "INSERT INTO api_key VALUES ('key', ?, 'reservations:write reservations:read', NULL)",
        (hashlib.sha256(key.encode()).digest(),),
    )
    db.execute(
        "INSERT INTO endpoint VALUES ('endpoint', ?, ?, 1, ?)",
        (receiver, '["reservation.created"]', "whsec_" + secrets.token_urlsafe(32)),
    )
    db.commit()
    db.close()


def _link(purpose: str, reservation_id: str) -> str:
    digest = hmac.new(LINK_KEY, f"{purpose}|{reservation_id}".encode(), "sha256").digest()
    return digest[:17].hex()


def _minutes(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])


def _timestamp(ms: int) -> str:
    at = dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def application(path: str) -> web.Application:
    """Return the application with the booking route and the outbox worker."""
    app = web.Application()

    async def beside(_: web.Application):
        plain = Plain(path)
        app[PLAIN] = plain
        async with aiohttp.ClientSession() as session:
            worker = asyncio.create_task(plain.work(session))
            yield
            worker.cancel()
        plain.db.close()

    async def book(request: web.Request) -> web.Response:
        return await app[PLAIN].book(request)

    async def ready(_: web.Request) -> web.Response:
        return web.Response()

    app.cleanup_ctx.append(beside)
    app.router.add_post("/v1/reservations", book)
    app.router.add_get("/ready", ready)
    return app


PLAIN = web.AppKey("plain", Plain)

if __name__ == "__main__":
    web.run_app(
        application(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]), access_log=None,
        print=None,
    )  # fmt: skip
