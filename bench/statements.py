"""What SQLite does for one request: its statements, their steps and their plans.

A box in this process, whose connections are listened to. Steps are instructions of SQLite's
virtual machine: the same on every machine and however busy it is, so that a young box and an
old one can be compared to the step. `python -m bench.run --only statements` prints them.
"""

import asyncio
import contextlib
import datetime as dt
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
from aiohttp import web
from aiohttp.test_utils import TestServer

from appliance.clock import newest_zone_database
from appliance.core.tokens import Keyring, Tokens
from appliance.database.connection import Transaction
from appliance.database.integrity import session
from appliance.door.guest_pass import pass_text
from appliance.door.terminals import issue_terminal
from appliance.reservations.rows import list_evening
from appliance.scheduler import Scheduler
from appliance.webhooks.endpoints import register_endpoint
from bench import past, venue
from tests.builders import TONIGHT, a_body
from tests.clocks import StoppedClock
from tests.conftest import MASTER_KEY, Running, furnished_template, running_box, with_settings

TIMES = 5  # requests of each kind that are counted, after as many that warm up
_GUESTS = 600  # of tonight
_EXPLAINED = {"SELECT", "WITH", "INSERT", "UPDATE", "DELETE"}
_NAME = re.compile(r":(\w+)")


@dataclass
class Statement:
    """One SQL text: how often a request runs it, and what that costs on average."""

    sql: str
    plan: str
    runs: int = 0
    steps: int = 0

    @property
    def steps_each(self) -> float:
        """Steps of one run."""
        return self.steps / self.runs


Kinds = dict[str, dict[str, Statement]]


class Ear:
    """Hears the statements of a box's live database."""

    def __init__(self) -> None:
        self._heard: dict[str, Statement] | None = None

    @contextlib.contextmanager
    def beside(self, path: Path) -> Iterator[None]:
        """Whatever opens `path` inside of the block is heard from then on."""

        def attend(connection: apsw.Connection) -> None:
            if connection.filename == str(path):
                connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._hear)

        apsw.connection_hooks.append(attend)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(attend)

    @contextlib.contextmanager
    def listening(self) -> Iterator[dict[str, Statement]]:
        """The statements that end inside of the block."""
        heard: dict[str, Statement] = {}
        self._heard = heard
        try:
            yield heard
        finally:
            self._heard = None

    def _hear(self, event: dict[str, Any]) -> None:
        """Called by SQLite, in whatever thread ran the statement."""
        heard = self._heard
        if heard is None:
            return
        sql, status = event["sql"], event["stmt_status"]
        found = heard.setdefault(sql, Statement(sql, ""))
        found.runs += 1
        found.steps += status["SQLITE_STMTSTATUS_VM_STEP"]


async def measure(folder: Path, rows: int) -> Kinds:
    """The statements of each kind of request on a box with so many past reservations."""
    async with _receiver() as url:
        terminal = _made(folder, url, rows)
        clock = StoppedClock(f"{TONIGHT}T19:00:00Z")
        settings = with_settings(
            api={"rate_limit_per_minute": 100_000},
            webhooks={"allow_networks": ("127.0.0.0/8",), "allow_http": True},
            door={"early_minutes": 24 * 60},
        )  # fmt: skip
        async with contextlib.AsyncExitStack() as stack:
            ear = Ear()
            # What runs beside the requests is no part of one.
            stack.enter_context(mock.patch.object(Scheduler, "start"))
            with ear.beside(folder / "live.db"):
                box = await stack.enter_async_context(running_box(folder, clock, settings))
            return await _all_kinds(box, terminal, ear)


def grown(young: Kinds, old: Kinds) -> list[str]:
    """What the old box does more of, in sentences; empty when the past costs nothing."""
    found = []
    for kind, statements in old.items():
        for sql, statement in statements.items():
            before = young[kind].get(sql)
            if before is None:
                found.append(f"{kind}: only the old box runs {sql}")
            elif statement.steps_each > before.steps_each * 1.05 + 5:
                steps = f"{before.steps_each:.0f} steps grew to {statement.steps_each:.0f}"
                found.append(f"{kind}: {steps}: {sql}")
            elif statement.plan != before.plan:
                found.append(f"{kind}: {before.plan} became {statement.plan}: {sql}")
    return found


def table(kinds: Kinds) -> str:
    """For people: each statement with its steps and its plan."""
    lines = []
    for kind, statements in kinds.items():
        total = sum(statement.steps for statement in statements.values()) / TIMES
        lines.append(f"{kind}: {total:,.0f} steps a request")
        for each in sorted(statements.values(), key=lambda statement: -statement.steps):
            sql = " ".join(each.sql.split())[:100]
            lines.append(
                f"  {each.runs / TIMES:5.1f} × {each.steps_each:7,.0f}  {sql}\n"
                f"{'':19}{each.plan or '-'}"
            )
    return "\n".join(lines)


async def _all_kinds(box: Running, terminal: str, ear: Ear) -> Kinds:
    database = box.live.database
    tables = [row[0] for row in await _rows(box, "SELECT id FROM venue_table ORDER BY position")]
    plan = _plan(tables)
    guests = await database.read(list_evening, TONIGHT)
    passes = [
        await database.read(pass_text, box.live.keyring, "live", guest)
        for guest in guests[: 2 * TIMES]
    ]
    door = {"Authorization": f"Bearer {terminal}"}
    week = f"from={plan.read_dates()[0]}&to={plan.read_dates()[6]}"

    async def book(n: int) -> None:
        body = a_body(tableId=tables[n], date=str(plan.load_dates()[n]), slot="20:00",
                      idempotencyKey=f"counted-{n}", notifyCustomer=False)  # fmt: skip
        await _ask(box, "POST", "/v1/reservations", 201, json=body)
        await _delivered(box)

    async def scan(n: int) -> None:
        body = {"scanId": f"counted-{n}", "code": passes[n]}
        verdict = await _ask(box, "POST", "/terminal/v1/scans", 200, json=body, headers=door)
        assert verdict["result"] == "checked_in", verdict
        await _delivered(box)

    async def read_evening(n: int) -> None:
        path = f"/terminal/v1/evening?date={plan.read_dates()[n]}"
        await _ask(box, "GET", path, 200, headers=door)

    async def read_list(n: int) -> None:
        await _ask(box, "GET", f"/v1/reservations?{week}&page=1", 200)

    async def read_tables(n: int) -> None:
        await _ask(box, "GET", f"/v1/availability?date={plan.read_dates()[n]}", 200)

    kinds: Kinds = {}
    for kind, request in (
        ("POST", book), ("scan", scan), ("evening list", read_evening), ("list page", read_list),
        ("availability", read_tables),
    ):  # fmt: skip
        for n in range(TIMES):
            await request(n)
        with ear.listening() as heard:
            for n in range(TIMES, 2 * TIMES):
                await request(n)
        kinds[kind] = heard
    _explain(database.path, kinds)
    return kinds


async def _ask(box: Running, method: str, path: str, status: int, **kwargs: Any) -> Any:
    found, answer, _ = await box.call(method, path, **kwargs)
    assert found == status, answer
    return answer


async def _rows(box: Running, sql: str) -> list[tuple[Any, ...]]:
    return await box.live.database.read(lambda reader: list(reader.rows(sql)))


async def _delivered(box: Running) -> None:
    """Until what was announced has arrived and that is written down; asked beside the box."""
    beside = apsw.Connection(str(box.live.database.path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        sql = "SELECT EXISTS (SELECT 1 FROM delivery WHERE state = 'pending')"
        while beside.execute(sql).get:  # noqa: ASYNC110 - looked at from outside
            await asyncio.sleep(0.005)
    finally:
        beside.close()


def _explain(path: Path, kinds: Kinds) -> None:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    for statement in (found for heard in kinds.values() for found in heard.values()):
        if statement.sql.split(maxsplit=1)[0] in _EXPLAINED:
            names = dict.fromkeys(_NAME.findall(statement.sql))
            values = names or (None,) * statement.sql.count("?")
            rows = connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", values)
            statement.plan = "; ".join(str(row[3]) for row in rows)
    connection.close()


def _plan(tables: list[str]) -> venue.Plan:
    return venue.Plan(tables, dt.date.fromisoformat(TONIGHT))


def _made(folder: Path, url: str, rows: int) -> str:
    """The bench's venue as files in `folder`; the token of its terminal."""
    for template in furnished_template().iterdir():
        shutil.copy(template, folder)
    live, tokens = folder / "live.db", Tokens()
    clock = StoppedClock(f"{TONIGHT}T12:00:00Z")
    with session(live, clock, tokens, newest_zone_database()) as tx:
        _furnish(tx)
        _, token = issue_terminal(tx, "Porte 1")
        register_endpoint(tx, Keyring(MASTER_KEY, "live"), url, past.ANNOUNCED)
        tables = [row[0] for row in tx.rows("SELECT id FROM venue_table ORDER BY position")]
    past.fill_tonight(live, _plan(tables), "lineage", _GUESTS)
    if rows:
        past.fill_past(live, _plan(tables), "lineage", rows, lambda _: None)
    return token


def _furnish(tx: Transaction) -> None:
    for n in range(6, venue.TABLES):
        row = {"id": tx.new_id(), "position": n, "number": f"T{n + 1}", "name": f"Terrasse {n + 1}",
               "capacity_min": 1, "capacity_max": 4, "minimum_spend": 500, "type": "standard",
               "bookable": 1}  # fmt: skip
        tx.insert("venue_table", row)
    tx.execute("UPDATE venue_table SET bookable = 1")
    tx.execute("DELETE FROM slot")
    for position, start in enumerate(venue.slots()):
        end = f"{(int(start[:2]) + 1) % 24:02d}:00"
        row = {"id": tx.new_id(), "position": position, "name": start, "start": start, "end": end,
               "days_of_week": "[0,1,2,3,4,5,6]"}  # fmt: skip
        tx.insert("slot", row)


@contextlib.asynccontextmanager
async def _receiver() -> AsyncIterator[str]:
    async def hook(request: web.Request) -> web.Response:
        await request.read()
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", hook)
    async with TestServer(app) as server:
        yield str(server.make_url("/hook"))
