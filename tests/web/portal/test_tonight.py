import asyncio
import re

import pytest

from appliance.actions.cancel import cancel
from tests.builders import TONIGHT, table_id
from tests.web.portal.people import a_person
from tests.web.portal.seating import path_of, rows, seat


def row_of(page, number):
    return re.search(rf'<tr id="t-{table_id(number)}".*?</tr>', page, re.DOTALL)[0]


async def test_the_board_shows_who_sits_where_how_many_and_from_where(running):
    host = await a_person(running, "host")
    salma = await seat(running, table="T2", slot="22:00", source="partner", guests=3)

    status, page, _ = await host.get("/portal/tonight")

    assert status == 200
    row = row_of(page, "T2")
    first, second = re.findall(r"<td>(.*?)</td>", row, re.DOTALL)
    assert 'class="free"' in first
    assert f'href="{path_of(salma)}"' in second
    assert "Salma Idrissi" in second
    assert '<span class="party">3</span>' in second
    assert ">P</span>" in second
    assert "expected, From a partner" in second


async def test_a_whole_evening_takes_the_row_and_a_cancelled_one_leaves_it_free(running):
    host = await a_person(running, "host")
    await seat(running, table="T1", slot=None)
    gone = await seat(running, table="T2", access_code=None)
    await running.live.database.write(cancel, gone.id, actor="box")

    _, page, _ = await host.get("/portal/tonight")

    assert '<td colspan="2">' in row_of(page, "T1")
    assert "Salma" not in row_of(page, "T2")


async def test_requests_and_unpaid_ones_wait_in_a_strip_above_the_board(running):
    host = await a_person(running, "host")
    asked = await seat(running, status="requested")
    await seat(running, table="T2", access_code=None)

    _, page, _ = await host.get("/portal/tonight")

    strip = re.search(r'<section id="waiting".*?</section>', page, re.DOTALL)[0]
    assert "Waiting for you" in strip
    assert strip.count("data-reservation") == 1
    assert asked.id in strip


async def test_the_totals_count_people_and_reservations(running):
    host = await a_person(running, "host")
    await seat(running, guests=4, arrived=3, checked_in_at=running.clock.now())
    await seat(running, table="T2", access_code=None)

    _, page, _ = await host.get("/portal/tonight")

    assert "<b>3</b> / 6 guests arrived" in page
    assert "<b>1</b> / 2 reservations" in page
    assert '<span class="party">3/4</span>' in page


@pytest.mark.parametrize(
    ("day", "title"),
    [("2026-11-20", "Last night"), (TONIGHT, "Tonight"), ("2026-11-22", "Tomorrow"),
     ("2026-12-24", "Thu 24 Dec")],
)  # fmt: skip
async def test_any_evening_has_its_board_and_the_way_to_its_neighbours(running, day, title):
    host = await a_person(running, "host")

    status, page, _ = await host.get(f"/portal/tonight?date={day}")

    assert status == 200
    assert f"<h1>{title}</h1>" in page
    assert f'value="{day}"' in page


async def test_a_date_that_is_none_is_declined_in_words(running):
    host = await a_person(running, "host")

    for wrong in ("tomorrow", "2026-02-30", "0000-00-00"):
        status, page, _ = await host.get(f"/portal/tonight?date={wrong}")
        assert status == 400
        assert "Invalid date" in page


async def test_past_evenings_offer_no_new_reservation(running):
    host = await a_person(running, "host")

    _, page, _ = await host.get("/portal/tonight?date=2026-11-20")

    assert 'class="free"' not in page


async def test_a_venue_without_tables_says_what_to_do_next(running):
    await running.live.database.write(lambda tx: tx.execute("DELETE FROM venue_table"))

    _, owners, _ = await (await a_person(running, "owner")).get("/portal/tonight")
    _, doors, _ = await (await a_person(running, "door")).get("/portal/tonight")

    assert 'href="/portal/venue"' in owners
    assert "There are no tables yet" in doors
    assert "/portal/venue" not in doors


async def test_the_door_sees_first_names_on_board_and_sheet_and_makes_no_reservations(running):
    door = await a_person(running, "door")
    await seat(running)

    for path in ("/portal/tonight", "/portal/tonight/sheet", "/portal/tonight/rows"):
        _, page, _ = await door.get(f"{path}?tables={table_id('T1')}")
        assert "Salma" in page
        assert "Idrissi" not in page
        assert "reservations/new" not in page


async def test_rows_of_some_tables_come_alone_with_totals_and_requests(running):
    host = await a_person(running, "host")
    await seat(running)

    _, part, _ = await host.get(f"/portal/tonight/rows?tables={table_id('T1')}")

    assert f'id="t-{table_id("T1")}"' in part
    assert f'id="t-{table_id("T2")}"' not in part
    assert 'id="totals"' in part
    assert "<html" not in part


async def test_the_sheet_for_paper_has_everybody_with_a_box_for_each_guest(running):
    host = await a_person(running, "host")
    await seat(running, guests=3, notes="Anniversaire")

    _, page, _ = await host.get("/portal/tonight/sheet")

    assert "Salma Idrissi" in page
    assert page.count("☐") == 3
    assert "Anniversaire" in page
    assert "SVC-2345" in page
    assert "<bdi>Riad Atlas</bdi> · as of Sat 21 Nov 19:00" in page
    _, empty, _ = await host.get("/portal/tonight/sheet?date=2026-12-24")
    assert "Nobody is expected on this evening yet." in empty


async def test_the_sheet_for_paper_says_who_has_no_table_yet_and_who_comes_late(running):
    host = await a_person(running, "host")
    for table, given in (("T1", {"status": "requested"}), ("T2", {"status": "partial"}),
                         ("T3", {"late_at": 1}), ("T4", {})):  # fmt: skip
        await seat(running, table=table, access_code=None, **given)

    _, page, _ = await host.get("/portal/tonight/sheet")

    lines = re.findall(r'<tr><th scope="row">(\w+)</th>.*?</bdi>(.*?)</td>', page, re.DOTALL)
    said = {number: re.sub("<.*?>", "", words).strip() for number, words in lines}
    assert said == {"T1": "requested", "T2": "payment due", "T3": "comes late", "T4": ""}


class Events:
    """An open stream of the board's events."""

    def __init__(self, response):
        self.response = response

    async def next(self, kind):
        """The lines of the next event of that kind."""
        while True:
            async with asyncio.timeout(60):
                raw = await self.response.content.readuntil(b"\n\n")
            if raw.startswith(f"event: {kind}\n".encode()):
                return raw.decode()

    async def ends(self):
        async with asyncio.timeout(60):
            await self.response.content.read()


async def listen(person, path="/portal/tonight/events"):
    response = await person.running.client.get(path, headers=person.headers)
    assert response.content_type == "text/event-stream"
    return Events(response)


async def test_a_change_names_its_row_and_its_version_to_whoever_looks_at_that_evening(running):
    host = await a_person(running, "host")
    events = await listen(host)
    await events.next("totals")

    await seat(running, date="2026-12-24", access_code=None)
    salma = await seat(running, table="T3")

    told = await events.next("row")
    assert salma.id in told
    assert table_id("T3") in told
    assert '"version": 1' in told
    events.response.close()


@pytest.mark.parametrize("path", ["/portal/tonight/events", "/test/portal/tonight/events"])
async def test_the_stream_ends_with_its_session(running, monkeypatch, path):
    monkeypatch.setattr("web.portal.tonight.events._HEARTBEAT_SECONDS", 0.1)
    host, other = await a_person(running, "host"), await a_person(running, "host", "Karim")
    mine, theirs = await listen(host, path), await listen(other, path)

    await host.post("/portal/sign-out")

    await mine.next("revoked")
    await mine.ends()
    await seat(running)
    if path.startswith("/portal"):
        await theirs.next("row")
    theirs.response.close()


async def test_nothing_of_the_evening_is_told_to_a_session_that_is_over(running):
    host = await a_person(running, "host")
    events = await listen(host)
    await events.next("totals")
    running.clock.advance(8 * 86_400)

    await seat(running, date="2026-11-29", access_code=None)

    told = await events.response.content.read()
    assert b"revoked" in told
    assert b"event: row" not in told


async def test_looking_at_the_board_writes_nothing(running):
    host = await a_person(running, "host")
    before = await rows(running, "SELECT total_changes()")

    for path in ("/portal/tonight", "/portal/tonight/sheet"):
        await host.get(path)

    assert await rows(running, "SELECT total_changes()") == before
