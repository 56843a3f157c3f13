"""The box as a peer: prepared once, copied for each round, checked row by row afterwards."""

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import apsw

from bench import past, venue
from bench.children import BenchError, Child, Children, ask, free_port, wait_until_answers
from bench.load import CONNECTIONS
from bench.passes import write_passes

PAGES = 20  # guests whose pages are read
_A_WISH = {
    "guests": venue.GUESTS,
    "customer": {"name": "Salma Bennani", "email": "salma@example.com"},
    "notifyCustomer": False,
}


@dataclass(frozen=True)
class Prepared:
    """A data directory ready to be copied, and what its users need to know."""

    folder: Path
    key: str
    terminal: str
    plan: venue.Plan
    lists: dict[str, str]
    settings: dict[str, str]
    receiver: Child

    @property
    def partner_headers(self) -> dict[str, str]:
        """For a request made by hand."""
        return {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}

    def as_partner(self) -> dict[str, str]:
        """The environment of a load with the partner's key."""
        return {**self.lists, "BENCH_AUTHORIZATION": f"Bearer {self.key}"}

    def as_terminal(self) -> dict[str, str]:
        """The environment of a load from the door."""
        return {**self.lists, "BENCH_AUTHORIZATION": f"Bearer {self.terminal}"}


def executable() -> str:
    """The program that `make setup` leaves beside this Python."""
    program = Path(sys.executable).parent / "venuebox"
    if not program.exists():
        raise BenchError("the box is not installed beside this Python: run make setup")
    return str(program)


def prepare(children: Children, folder: Path, receiver: Child) -> Prepared:
    """Makes a box with one partner, one terminal, one subscribed endpoint and tonight's guests."""
    data, lists = folder / "box", folder / "lists"
    lists.mkdir()
    (folder / "venue.toml").write_text(venue.venue_file())
    run_command("init", "--data", str(data), "--venue", str(folder / "venue.toml"))
    names = ("--data", str(data), "--environment", "live", "--name", "bench", "--json")
    key = str(json.loads(run_command("key", "create", *names))["key"])
    terminal = str(json.loads(run_command("terminal", "create", *names))["token"])
    settings = _settings(receiver)
    child = start(children, data, settings)
    wait_until_answers(child, "/v1/venue", {"Authorization": f"Bearer {key}"})
    plan = _learn(child, key, terminal)
    _register(child, key, receiver)
    children.stop(child)
    past.fill_tonight(data / "live.db", plan, lineage(data))
    files = plan.write(lists)
    child = start(children, data, settings)  # whose access codes are not those of tonight's guests
    wait_until_answers(child, "/v1/venue", {"Authorization": f"Bearer {key}"})
    pages = [_page_of(child, key, plan, table) for table in plan.tables[:PAGES]]
    children.stop(child)
    # A box without one makes its first backup a minute after it starts, within a round.
    run_command("backup", "--data", str(data))
    (lists / "PAGES").write_text("\n".join(pages) + "\n")
    files["BENCH_PAGES"] = str(lists / "PAGES")
    files["BENCH_PASSES"] = str(write_passes(data, plan.tonight, lists / "PASSES"))
    return Prepared(data, key, terminal, plan, files, settings, receiver)


def serve(children: Children, folder: Path, prepared: Prepared) -> Child:
    """Starts the box on a copy of prepared data and waits for its first answer."""
    child = start(children, folder, prepared.settings)
    wait_until_answers(child, "/v1/venue", {"Authorization": f"Bearer {prepared.key}"})
    return child


def start(
    children: Children, folder: Path, settings: dict[str, str], host: str = "127.0.0.1"
) -> Child:
    """Starts the box without waiting for it."""
    port = free_port()
    argv = [
        executable(),
        "serve",
        "--data",
        str(folder),
        "--host",
        host,
        "--port",
        str(port),
    ]
    return children.start("box", argv, port, settings)


def right_answers(child: Child, prepared: Prepared) -> tuple[object, object, object, str]:
    """A booking, an evening, a scan and a guest's page as the box answers them, checked."""
    booking = {
        **_A_WISH,
        "tableId": prepared.plan.tables[0],
        "date": (prepared.plan.tonight + dt.timedelta(days=1)).isoformat(),
        "slot": venue.slots()[0],
        "idempotencyKey": "sample",
    }
    partner, door = (
        {"Authorization": f"Bearer {prepared.key}"},
        {"Authorization": f"Bearer {prepared.terminal}"},
    )
    booked = _expect(child, "POST", "/v1/reservations", partner, HTTPStatus.CREATED, booking)
    read = _expect(child, "GET", _first(prepared, "AVAILABILITY"), partner, HTTPStatus.OK)
    listed = _expect(child, "GET", _first(prepared, "LIST"), partner, HTTPStatus.OK)
    passes = _first(prepared, "PASSES")
    scan = {"scanId": "00000000-0000-4000-9000-000000000000", "code": passes}
    verdict = _expect(child, "POST", "/terminal/v1/scans", door, HTTPStatus.OK, scan)
    if verdict["result"] != "checked_in":
        raise BenchError(f"a fresh pass was not admitted: {verdict}")
    blocked = [table["blockedBy"] for table in read["tables"]]
    if len(blocked) != venue.TABLES or set(blocked) != {"partner"}:
        raise BenchError(f"an evening where every table is held does not say so: {blocked}")
    if listed["total"] != 7 * venue.TABLES:
        raise BenchError(f"a week of {7 * venue.TABLES} reservations lists {listed['total']}")
    status, page = ask(child, "GET", _first(prepared, "PAGES"))
    if status != HTTPStatus.OK or b"<svg" not in page:
        raise BenchError(f"a guest's page was answered {status}, or has no code on it")
    return booked, read, verdict, page.decode()


def check_bookings(folder: Path, answered: int, loads: int) -> None:
    """Every 201 is a row, announced; what was cut off at a load's end may be one too."""
    # By its reservation: by their type alone there are a million events to each booking.
    rows, told = _row(
        folder,
        """
        SELECT count(*), count(delivery.seq) FROM reservation
            LEFT JOIN event ON reservation_id = reservation.id AND +type = 'reservation.created'
            LEFT JOIN delivery ON event_seq = event.seq
        WHERE idempotency_key GLOB 'bench-*'""",
    )
    if not answered <= rows <= answered + loads * CONNECTIONS or told != rows:
        raise BenchError(
            f"{answered} bookings were acknowledged, {rows} are stored, {told} announced"
        )


def check_scans(folder: Path, tonight: dt.date, answered: int, loads: int) -> None:
    """Every answered scan let its guest in, and nothing else came of any."""
    counted = """
        SELECT count(*) FILTER (WHERE result = 'checked_in'),
            count(*) FILTER (WHERE result <> 'checked_in'),
            (SELECT count(*) FROM reservation WHERE date = :tonight AND checked_in_at NOT NULL)
        FROM scan_log WHERE at >= unixepoch(:tonight) * 1000"""
    scans, others, guests = _row(folder, counted, {"tonight": tonight.isoformat()})
    if others or guests != scans or not answered <= scans <= answered + loads * CONNECTIONS:
        raise BenchError(
            f"{answered} scans answered, {scans} admitted, {others} refused, {guests} guests in"
        )


def drop_backlog(folder: Path) -> None:
    """Forgets deliveries a stopped box has not made yet, so that the next round starts level."""
    connection = apsw.Connection(str(folder / "live.db"))
    connection.execute("UPDATE delivery SET state = 'cancelled' WHERE state = 'pending'")
    connection.close()


def lineage(folder: Path) -> str:
    """Whose reservations the prepared ones are, read from a stopped box."""
    return str(_row(folder, "SELECT lineage FROM api_key")[0])


def _settings(receiver: Child) -> dict[str, str]:
    return {
        "VENUEBOX_API_RATE_LIMIT_PER_MINUTE": "100000000",
        "VENUEBOX_API_UNAUTHENTICATED_PER_MINUTE": "100000000",
        "VENUEBOX_WEBHOOKS_ALLOW_NETWORKS": f"127.0.0.1:{receiver.port}",
        "VENUEBOX_WEBHOOKS_ALLOW_HTTP": "true",
        "VENUEBOX_DOOR_EARLY_MINUTES": "1440",
        "VENUEBOX_BACKUP_EVERY_MINUTES": "0",
    }


def run_command(*arguments: str) -> str:
    """Runs the program and returns its output; BenchError if it fails."""
    done = subprocess.run([executable(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"venuebox {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def _learn(child: Child, key: str, terminal: str) -> venue.Plan:
    partner, door = {"Authorization": f"Bearer {key}"}, {"Authorization": f"Bearer {terminal}"}
    tables = _expect(child, "GET", "/v1/venue", partner, HTTPStatus.OK)["tables"]
    evening = _expect(child, "GET", "/terminal/v1/me", door, HTTPStatus.OK)["evening"]
    date = evening["date"] if isinstance(evening, dict) else evening
    return venue.Plan([table["id"] for table in tables], dt.date.fromisoformat(date))


def _page_of(child: Child, key: str, plan: venue.Plan, table: str) -> str:
    """The path of a guest's page: theirs is the evening after tonight."""
    date = (plan.tonight + dt.timedelta(days=1)).isoformat()
    body = {**_A_WISH, "tableId": table, "date": date, "slot": venue.slots()[1],
            "idempotencyKey": f"page-{table}"}  # fmt: skip
    headers = {"Authorization": f"Bearer {key}"}
    booked = _expect(child, "POST", "/v1/reservations", headers, HTTPStatus.CREATED, body)
    return urlsplit(booked["guestAccessUrl"]).path


def _register(child: Child, key: str, receiver: Child) -> None:
    body = {"url": f"{receiver.url}/hook"}
    _expect(
        child, "POST", "/v1/webhooks", {"Authorization": f"Bearer {key}"}, HTTPStatus.CREATED, body
    )


def _expect(
    child: Child, method: str, path: str, headers: dict[str, str], status: int, body: object = None
) -> Any:
    raw = None if body is None else json.dumps(body).encode()
    found, answer = ask(child, method, path, raw, headers)
    if found != status:
        raise BenchError(f"{method} {path} answered {found}: {answer.decode()[:500]}")
    return json.loads(answer)


def _first(prepared: Prepared, name: str) -> str:
    with Path(prepared.lists[f"BENCH_{name}"]).open() as lines:
        return lines.readline().strip()


def _row(
    folder: Path, sql: str, values: Mapping[str, str] = MappingProxyType({})
) -> tuple[Any, ...]:
    connection = apsw.Connection(str(folder / "live.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return next(connection.execute(sql, values))
    finally:
        connection.close()
