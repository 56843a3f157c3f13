"""Eight terminals with live feeds scan the same guests in and out, with retries."""

import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field

import aiohttp

from appliance.clock import SystemClock, newest_zone_database
from appliance.core.data_directory import DataDirectory
from appliance.core.tokens import Keyring, Tokens
from appliance.database.connection import Reader, open_connection
from appliance.database.integrity import session
from appliance.door.guest_pass import pass_text
from appliance.door.terminals import issue_terminal
from appliance.venue.model import find_tonight
from tests.unit.arrivals import add_reservation

TERMINALS = 8
PATIENCE = 60.0
_LEAVING = 0.5  # the proportion of later scans that are exits


@dataclass(frozen=True)
class Party:
    reservation_id: str
    text: str
    guests: int


@dataclass
class Terminal:
    """The answers and the feed events that one terminal received."""

    id: str
    token: str
    verdicts: dict = field(default_factory=dict)  # scanId -> its answer, which never changes
    rows: dict = field(default_factory=dict)  # reservation id -> the latest row from the feed
    totals: dict = field(default_factory=dict)
    check_ins: Counter = field(default_factory=Counter)  # number of people by reservation id
    resets: int = 0
    cut: int = 0


@dataclass
class Crowd:
    """The parties, the terminals, and the duration of each decision in seconds."""

    data: object
    parties: list
    terminals: list
    seconds: list = field(default_factory=list)


def expect(data, parties, seed):
    """Create parties for tonight and eight terminals in the live environment."""
    path = data / "live.db"
    directory = DataDirectory(data)
    keyring = Keyring(directory.master_key(), "live")
    chance = random.Random(seed)
    with session(path, SystemClock(), Tokens(), newest_zone_database()) as tx:
        evening = find_tonight(tx).isoformat()
        tables = [row[0] for row in tx.rows("SELECT id FROM venue_table")]
        found = []
        for number in range(parties):
            minute = number // len(tables)
            guest = add_reservation(
                tx, table_id=tables[number % len(tables)], date=evening, starts=minute,
                ends=minute + 1, guests=chance.randint(1, 6),
            )  # fmt: skip
            found.append(Party(guest.id, pass_text(tx, keyring, "live", guest), guest.guests))
        doors = [Terminal(*issue_terminal(tx, f"Porte {n + 1}")) for n in range(TERMINALS)]
    return Crowd(data, found, doors)


async def storm(crowd, address, scans, seed):
    """Let all terminals scan at once. Every party comes at least once; some go out or return."""
    chance = random.Random(seed)
    more = chance.choices(crowd.parties, k=scans - len(crowd.parties))
    work = [(party, False) for party in crowd.parties]
    work += [(party, chance.random() < _LEAVING) for party in more]
    chance.shuffle(work)
    shares = [work[n::TERMINALS] for n in range(TERMINALS)]
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(address, connector=connector) as client:
        ears = [asyncio.create_task(_listen(t, client, chance)) for t in crowd.terminals]
        await _eventually(lambda: all(t.totals for t in crowd.terminals), "somebody hears nothing")
        await asyncio.gather(
            *(
                _scan_all(crowd, terminal, client, share, random.Random(f"{seed} {terminal.id}"))
                for terminal, share in zip(crowd.terminals, shares, strict=True)
            )
        )
        evening = await _call(client, crowd.terminals[0], "GET", "/evening")
        expected = {row["id"]: row for row in evening["items"] if row["arrived"]}

        def agree():
            return all(
                t.rows == expected and t.totals == evening["totals"] for t in crowd.terminals
            )

        await _eventually(agree, "the feeds of two terminals do not agree with the list")
        for ear in ears:
            ear.cancel()
        await asyncio.gather(*ears, return_exceptions=True)
    return evening


def complaints(crowd, evening):
    """Return everything that is wrong at the end."""
    rows = {row["id"]: row for row in evening["items"]}
    first, people = Counter(), Counter()
    for terminal in crowd.terminals:
        for verdict in terminal.verdicts.values():
            if verdict["admitted"]:
                people[verdict["reservation"]["id"]] += verdict["admitted"]
            if verdict["result"] == "checked_in":
                first[verdict["reservation"]["id"]] += 1
    found = []
    for party in crowd.parties:
        row = rows[party.reservation_id]
        if first[party.reservation_id] != 1:
            found.append(f"{party} was checked in {first[party.reservation_id]} times")
        if not 1 <= row["arrived"] == people[party.reservation_id] <= party.guests:
            found.append(f"{party}: {row['arrived']} came, {people[party.reservation_id]} told")
        for terminal in crowd.terminals:
            heard = terminal.check_ins[party.reservation_id]
            if not terminal.resets and heard != row["arrived"]:
                found.append(f"{terminal.id} heard of {heard} people of {party}")
    return found + _miscounted(crowd, evening) + _look_into(crowd, evening)


def _miscounted(crowd, evening):
    """Return the parties whose number inside differs from what the terminals were told."""
    told = Counter()
    for verdict in (each for terminal in crowd.terminals for each in terminal.verdicts.values()):
        told[verdict["reservation"]["id"]] += verdict["admitted"] + verdict["moved"]
    rows = {row["id"]: row["arrived"] - row["out"] for row in evening["items"]}
    rows["all"], told["all"] = evening["totals"]["inside"]["people"], sum(told.values())
    return [f"{id_}: {told[id_]} inside, not {rows[id_]}" for id_ in rows if rows[id_] != told[id_]]


def _look_into(crowd, evening):
    reader = Reader(
        open_connection(crowd.data / "live.db", writable=False),
        SystemClock(),
        newest_zone_database(),
    )
    try:
        sql = """SELECT reservation_id, count(*) FROM event
                 WHERE type = 'reservation.checked_in' GROUP BY reservation_id"""
        events = dict(reader.rows(sql))
        scans = reader.value("SELECT count(*) FROM scan_log")
        logged = reader.value("SELECT sum(admitted + moved) FROM scan_log")
    finally:
        reader.connection.close()
    found = []
    if events != {party.reservation_id: 1 for party in crowd.parties}:
        found.append("a party has no event, or two")
    if logged != evening["totals"]["inside"]["people"]:
        found.append(f"the door log has {logged} people inside")
    if scans != sum(len(terminal.verdicts) for terminal in crowd.terminals):
        found.append(f"the door log has {scans} scans")
    return found


async def _scan_all(crowd, terminal, client, share, chance):
    for number, (party, is_leaving) in enumerate(share):
        body = {"scanId": f"{terminal.id[-6:]}-{number}", "code": party.text}
        if is_leaving:
            body["leaving"] = True
        if chance.random() < 0.5:
            body["arrivals"] = chance.randint(1, party.guests)
        tries = chance.choices((1, 2, 3), (70, 20, 10))[0]
        if chance.random() < 0.05:
            await _hang_up(client, terminal, body, chance.random() * 0.01)
            terminal.cut += 1
        begun = time.monotonic()
        answers = await asyncio.gather(
            *(_call(client, terminal, "POST", "/scans", body) for _ in range(tries))
        )
        crowd.seconds.append(time.monotonic() - begun)
        assert all(answer == answers[0] for answer in answers), answers
        terminal.verdicts[body["scanId"]] = answers[0]


async def _hang_up(client, terminal, body, after):
    """Send a request and disconnect before the answer, as on a bad network."""
    sent = asyncio.create_task(_call(client, terminal, "POST", "/scans", body))
    await asyncio.sleep(after)
    sent.cancel()
    await asyncio.gather(sent, return_exceptions=True)


async def _call(client, terminal, method, path, body=None):
    headers = {"Authorization": f"Bearer {terminal.token}"}
    async with client.request(method, f"/terminal/v1{path}", json=body, headers=headers) as found:
        answer = await found.json()
        assert found.status == 200, answer
        return answer


async def _listen(terminal, client, chance):
    """Follow the feed. Sometimes disconnect, and reconnect for the missed events.

    On a busy machine, a slow listener is told to reload the evening, and does so.
    """
    position = None
    while True:
        headers = {"Authorization": f"Bearer {terminal.token}"}
        if position is not None:
            headers["Last-Event-ID"] = position
        left = chance.randint(20, 200)
        timeout = aiohttp.ClientTimeout(total=None)
        async with client.get("/terminal/v1/events", headers=headers, timeout=timeout) as stream:
            event = {}
            async for line in stream.content:
                if line != b"\n":
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    event[name] = value
                    continue
                position = event.get("id", position)
                if "event" in event:
                    _hear(terminal, event["event"], json.loads(event["data"]))
                    if event["event"] == "reset":
                        _load(terminal, await _call(client, terminal, "GET", "/evening"))
                    left -= 1
                event = {}
                if left == 0:
                    break


def _hear(terminal, kind, data):
    terminal.resets += kind == "reset"
    terminal.totals = data.get("totals", terminal.totals)
    if (row := data.get("reservation")) is not None:
        terminal.rows[row["id"]] = row
    if kind == "check-in":
        terminal.check_ins[row["id"]] += data["admitted"]


def _load(terminal, evening):
    terminal.rows = {row["id"]: row for row in evening["items"] if row["arrived"]}
    terminal.totals = evening["totals"]


async def _eventually(condition, complaint):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, complaint
        await asyncio.sleep(0.05)
