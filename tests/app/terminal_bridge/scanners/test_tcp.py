"""The line reader: each line gets one line in response. Also in a real box process."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from appliance.clock import SystemClock
from appliance.core.scanner_settings import ReaderSettings
from appliance.door.terminals import issue_terminal
from terminal_bridge.scanners import tcp
from terminal_bridge.scanners.scanner import Answer, Watch, line_of
from terminal_bridge.scanners.tcp import TcpReader
from tests.app.terminal_bridge.scanners.conftest import reading
from tests.journeys.box_process import STOP_SECONDS, BoxProcess, found_box
from tests.journeys.partner_side import calling as calling_box
from tests.waiting import within


@asynccontextmanager
async def calling(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answer_of(reading):
    async with within("an answer to the scanner"):
        return await reading


async def say(connection, text):
    reader, writer = connection
    writer.write(text.encode())
    return (await answer_of(reader.readline())).decode()


async def test_each_line_gets_one_line_in_response(box, door, port):
    text = await door.pass_of(await door.guest(guests=4))

    async with reading(box, kind="tcp", port=port), calling(port) as connection:
        green = await say(connection, f"{text}\r\n")
        red = await say(connection, "nobody's\n")

    assert green == "GREEN checked_in Terrasse_1 1/4 Entrée validée : Terrasse 1, 1 personne.\r\n"
    assert red.startswith("RED unknown_code - - ")


async def test_after_ten_wrong_codes_a_connection_refuses_typed_codes_but_not_passes(
    box, door, port
):
    guest = await door.guest(access_code="SVC-7K2M")

    async with reading(box, kind="tcp", port=port), calling(port) as connection:
        for sign in "23456789AC":
            assert (await say(connection, f"22{sign}2\n")).startswith("RED unknown_code")
        typed = await say(connection, "7K2M\n")
        arrived = (await door.now_of(guest)).arrived
        scanned = await say(connection, f"{await door.pass_of(guest)}\n")

    assert (typed.startswith("GREEN"), arrived) == (False, 0)
    assert scanned.startswith("GREEN checked_in")


async def test_a_code_without_a_line_end_is_decided_when_the_device_stops_sending(box, door, port):
    text = await door.pass_of(await door.guest(guests=4))

    async with reading(box, kind="tcp", port=port), calling(port) as (reader, writer):
        writer.write(text.encode())
        writer.write_eof()
        answer = await answer_of(reader.read())

    assert answer.startswith(b"GREEN checked_in Terrasse_1 1/4 ")
    assert answer.count(b"\r\n") == 1


async def test_a_party_of_four_is_admitted_one_by_one(box, door, port, clock):
    text = await door.pass_of(await door.guest(guests=4))

    async with reading(box, kind="tcp", port=port), calling(port) as connection:
        told = []
        for _ in range(5):
            told.append((await say(connection, f"{text}\n")).split()[:4])
            clock.advance(3.1)

    assert told == [
        ["GREEN", "checked_in", "Terrasse_1", "1/4"],
        ["GREEN", "party_added", "Terrasse_1", "2/4"],
        ["GREEN", "party_added", "Terrasse_1", "3/4"],
        ["GREEN", "party_added", "Terrasse_1", "4/4"],
        ["AMBER", "already_checked_in", "Terrasse_1", "4/4"],
    ]


@pytest.mark.parametrize(("repeat", "word"), [(False, "SAME"), (True, "GREEN")])
async def test_the_same_code_within_three_seconds_is_one_scan_and_answered_with_same(
    box, door, port, clock, repeat, word
):
    text = await door.pass_of(await door.guest(guests=1))
    settings = {"kind": "tcp", "port": port, "repeat_answer": repeat}

    async with reading(box, **settings), calling(port) as connection:
        answers = [await say(connection, f"{text}\n") for _ in range(3)]
        assert [answer.split()[:2] for answer in answers] == [
            ["GREEN", "checked_in"], [word, "checked_in"], [word, "checked_in"]
        ]  # fmt: skip
        assert len(await door.rows("SELECT 1 FROM scan_log")) == 1
        clock.advance(3.1)
        assert (await say(connection, f"{text}\n")).startswith("AMBER already_checked_in ")

    assert len(await door.rows("SELECT 1 FROM scan_log")) == 2


async def test_one_code_sent_on_two_connections_at_once_opens_only_once(box, door, port):
    text = await door.pass_of(await door.guest(guests=1))

    async with reading(box, kind="tcp", port=port), calling(port) as one, calling(port) as other:
        answers = await asyncio.gather(say(one, f"{text}\n"), say(other, f"{text}\n"))

    assert sorted(answer.split()[0] for answer in answers) == ["GREEN", "SAME"]


async def test_a_terminal_is_identified_by_its_id_and_refused_once_revoked(box, door, port):
    text = await door.pass_of(await door.guest())

    async with reading(box, kind="tcp", port=port, terminal=door.terminal_id) as readers:
        async with calling(port) as connection:
            assert (await say(connection, "x1234\n")).startswith("RED ")
            await box.live.database.write(
                lambda tx: tx.execute("UPDATE terminal SET revoked_at = 1")
            )
            refused = await say(connection, f"{text}\n")

        assert refused.startswith("GREY error - - ")
        assert "revoked" in readers.states[0].trouble


async def test_a_missing_terminal_is_reported_and_found_once_it_is_created(box, port, clock):
    settings = {"kind": "tcp", "port": port, "terminal": "Cuisine"}
    async with reading(box, **settings) as readers, calling(port) as connection:
        answer = await say(connection, "x1234\n")
        assert readers.states[0].last_read_at is not None
        await box.live.database.write(issue_terminal, "Cuisine")
        assert (await say(connection, "x1234\n")).startswith("RED unknown_code")

    assert answer.startswith("GREY error - - there is no terminal Cuisine")
    assert "venuebox terminal create" in answer
    assert readers.states[0].trouble is None


async def green(_code):
    return Answer("green", "checked_in")


@asynccontextmanager
async def serving(port, decide=green):
    settings = ReaderSettings(kind="tcp", port=port)
    reader = TcpReader(settings, decide, Watch(settings, SystemClock()))
    await reader.start()
    try:
        yield
    finally:
        await reader.close()


async def test_a_silent_connection_is_closed(port, monkeypatch):
    monkeypatch.setattr(tcp, "IDLE_SECONDS", 0.5)
    async with serving(port), calling(port) as (idle, _):
        assert await answer_of(idle.read()) == b""


def test_text_with_separators_cannot_add_fields_to_a_response_line():
    answer = Answer("amber", "party_full", "La  grande table", "2/2", "Plus de\nmonde")

    assert line_of(answer) == b"AMBER party_full La_grande_table 2/2 Plus de monde\r\n"
    assert line_of(Answer("grey", "error")) == b"GREY error - - -\r\n"


@pytest.mark.process
@pytest.mark.slow
async def test_a_box_with_readers_stops_immediately_even_with_an_open_connection(tmp_path, port):
    founded = await asyncio.to_thread(found_box, tmp_path)
    (founded.data / "settings.toml").write_text(
        f"""
        [[readers]]
        kind = "tcp"
        port = {port}
        terminal = "T"
        [[readers]]
        kind = "serial"
        device = "/dev/serial/by-id/absent"
        terminal = "T"
        """,
        "utf-8",
    )
    box = BoxProcess(founded.data, log=tmp_path / "box.log")
    try:
        await asyncio.to_thread(box.start)
        async with calling_box(box, founded, "live") as (partner, door):
            [table, *_] = (await partner.must(200, "GET", "/v1/venue"))["tables"]
            evening = (await door.must(200, "GET", "/terminal/v1/me"))["evening"]
            body = {"tableId": table["id"], "date": evening, "guests": 2, "idempotencyKey": "one",
                    "customer": {"name": "Salma", "phone": "+212 600 000 001"}}  # fmt: skip
            booked = await partner.must(201, "POST", "/v1/reservations", body)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{booked['guestAccessUrl']}\n".encode())
        line = await answer_of(reader.readline())

        assert line.startswith(b"GREEN checked_in Terrasse_1 1/2 ")
        assert await asyncio.to_thread(box.stop) < STOP_SECONDS
        writer.close()
    finally:
        box.kill()
    assert "is not there. Plug it in" in box.complaints()
    assert "Traceback" not in box.complaints()
