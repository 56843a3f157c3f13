"""The board of an evening, its events, and the printable list."""

import re

import pytest

from appliance.checks.check import RELAY_AWAY, observe
from appliance.door.terminals import issue_terminal
from appliance.venue.edit import add_slot
from appliance.venue.model import Slot
from tests.app.portal.people import a_person
from tests.app.portal.seating import path_of, seat
from tests.app.terminal_bridge.listening import Ear
from tests.builders import TONIGHT, table_id
from web.monitoring import EXAMINER


def row_of(page, number):
    return re.search(rf'<tr id="t-{table_id(number)}".*?</tr>', page, re.DOTALL)[0]


async def test_the_board_shows_the_guest_size_and_source_of_each_table(running, host):
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


async def test_the_board_of_an_inactive_venue_says_so_and_links_to_the_setting(
    running, host, manager
):
    _, before, _ = await host.get("/portal/tonight")
    assert "is not active" not in before
    assert 'class="free"' in before
    await running.live.database.write(lambda tx: tx.execute("UPDATE venue SET status = 'inactive'"))

    (_, for_host, _), (_, for_manager, _) = [
        await person.get("/portal/tonight") for person in (host, manager)
    ]

    assert "is not active" in for_host
    assert 'class="free"' not in for_host
    assert 'href="/portal/venue/rules"' not in for_host
    assert (
        'is not active: no reservation can be made. <a href="/portal/venue/rules">' in for_manager
    )


async def test_the_board_shows_managers_a_failing_check(running, host, manager):
    await running.live.database.write(observe, RELAY_AWAY, "relay.example")
    await running.app[EXAMINER].look(again=True)

    (_, for_host, _), (_, for_manager, _) = [
        await person.get("/portal/tonight") for person in (host, manager)
    ]
    assert "relay.example" in for_manager
    assert "relay.example" not in for_host


async def test_the_board_shows_everybody_that_the_disk_is_full(running, host):
    running.live.database.is_full = True
    _, full, _ = await host.get("/portal/tonight")
    running.live.database.is_full = False
    _, after, _ = await host.get("/portal/tonight")

    assert "The disk is full: only check-ins are recorded." in full
    assert "The disk is full" not in after


@pytest.mark.parametrize(
    ("day", "status", "is_offered"),
    [("2026-11-20", 200, False), (TONIGHT, 200, True), ("2026-12-24", 200, True),
     ("tomorrow", 400, False), ("2026-02-30", 400, False), ("0000-00-00", 400, False)],
)  # fmt: skip
async def test_the_board_of_a_future_evening_offers_free_tables(host, day, status, is_offered):
    answered, page, _ = await host.get(f"/portal/tonight?date={day}")
    assert (answered, 'class="free"' in page) == (status, is_offered)
    assert f'value="{day}"' in page or status == 400


async def test_a_table_occupied_in_an_overlapping_slot_is_not_offered(running, host):
    late = Slot(id="", name="Late", start="21:00", end="23:30", days_of_week=tuple(range(7)))
    await running.live.database.write(add_slot, late)
    await seat(running, slot="19:30", starts=19 * 60 + 30, ends=22 * 60)

    _, board, _ = await host.get("/portal/tonight")
    offered = {
        number: re.findall(r'class="free" href="[^"]*slot=([0-9:]+)"', row_of(board, number))
        for number in ("T1", "T2")
    }
    assert offered == {"T1": ["22:00"], "T2": ["19:30", "21:00", "22:00"]}
    for slot, is_offered in (("21:00", False), ("22:00", True)):
        query = f"date={TONIGHT}&slot={slot}&table={table_id('T1')}"
        _, page, _ = await host.get(f"/portal/reservations/new?{query}")
        assert (f'<option value="{table_id("T1")}"' in page) is is_offered


async def test_door_staff_see_only_first_names_and_cannot_create_reservations(running):
    door = await a_person(running, "door")
    await seat(running)

    for path in ("/portal/tonight", "/portal/tonight/sheet", "/portal/tonight/rows"):
        _, page, _ = await door.get(f"{path}?tables={table_id('T1')}")
        assert "Salma" in page
        assert "Idrissi" not in page
        assert "reservations/new" not in page


async def test_late_guests_and_notes_have_a_symbol_and_hosts_see_phone_numbers(running, host):
    await seat(running, notes="Arachides", late_at=1, customer_phone="+212612345678")
    _, page, _ = await host.get("/portal/tonight")
    assert row_of(page, "T1").count("<svg") == 2
    assert "+212612345678" in page


async def test_the_rows_of_some_tables_can_be_requested_with_totals_and_requests(running, host):
    await seat(running)
    _, part, _ = await host.get(f"/portal/tonight/rows?tables={table_id('T1')}")
    assert f'id="t-{table_id("T1")}"' in part
    assert f'id="t-{table_id("T2")}"' not in part
    assert 'id="totals"' in part
    assert "<html" not in part


async def test_requests_for_other_evenings_are_counted_for_staff_who_may_answer(running, host):
    events, door = await listen(host), await a_person(running, "door")
    await seat(running, table="T2", status="requested", source="platform")
    other = await seat(
        running, status="requested", source="platform", date="2026-12-24", access_code=None
    )
    while other.id not in str((await events.until("row")).data):
        pass
    events.response.close()

    _, page, _ = await host.get("/portal/tonight")
    assert "<title>(2) " in page
    assert 'data-requests="2"' in page
    assert '<p><a href="/portal/reservations">1 ' in page
    _, page, _ = await door.get("/portal/tonight")
    assert "<title>(" not in page
    assert "data-requests" not in page


async def test_the_printed_list_has_every_guest_with_a_tick_box_per_person(running, host):
    await seat(running, guests=3, notes="Anniversaire")
    _, page, _ = await host.get("/portal/tonight/sheet")
    assert "Salma Idrissi" in page
    assert page.count("☐") == 3
    assert "Anniversaire" in page
    assert "SVC-2345" in page


async def listen(person, *pages):
    """Open a browser's shared stream for these pages (environment, evening, position)."""
    asked = [("page", f"{n}!{page}") for n, page in enumerate(pages or (f"live!{TONIGHT}!",))]
    response = await person.running.client.get("/live", params=asked, headers=person.headers)
    assert response.content_type == "text/event-stream"
    return Ear(response)


async def test_a_live_event_names_the_changed_row_and_its_version(running, host):
    events = await listen(host)
    await events.until("totals")

    await seat(running, date="2026-12-24", access_code=None)
    salma = await seat(running, table="T3")

    told = (await events.until("row")).data
    assert told == {"reservation": salma.id, "tables": [table_id("T3")], "version": 1}
    events.response.close()


@pytest.mark.parametrize("environment", ["live", "test"])
async def test_the_event_stream_ends_with_its_session(running, monkeypatch, environment):
    monkeypatch.setattr("terminal_bridge.api.live_feed.HEARTBEAT_SECONDS", 0.1)
    host, other = await a_person(running, "host"), await a_person(running, "host", "Karim")
    page = f"{environment}!{TONIGHT}!"
    mine, theirs = await listen(host, page), await listen(other, page)

    await host.post("/portal/sign-out")

    await mine.until("revoked")
    assert (await mine.next()).kind == "over"
    assert await mine.next() is None
    await seat(running)
    if environment == "live":
        await theirs.until("row")
    theirs.response.close()


async def test_an_expired_session_gets_no_live_events(running, host):
    events = await listen(host)
    await events.until("totals")
    running.clock.advance(8 * 86_400)

    await seat(running, date="2026-11-29", access_code=None)

    assert [(await events.next()).kind for _ in range(2)] == ["revoked", "over"]
    assert await events.next() is None


async def test_one_event_stream_sends_each_page_its_own_and_its_missed_events(running, host):
    before = running.live.feed.position
    missed = await seat(running, date="2026-12-24", access_code=None)
    events = await listen(host, f"live!{TONIGHT}!", f"live!2026-12-24!{before}", f"test!{TONIGHT}!")
    assert (await events.until("row")).data["reservation"] == missed.id

    seated = await seat(running)
    other = await seat(running, date="2026-12-24", table="T2", access_code=None)

    told = [await events.until("row"), await events.until("row")]
    assert [(each.to, each.data["reservation"]) for each in told] == [
        ("0", seated.id), ("1", other.id),
    ]  # fmt: skip
    events.response.close()


@pytest.mark.parametrize("kept", ["session", "terminal"])
async def test_a_page_without_its_own_cookie_gets_no_events_and_the_other_page_does(running, kept):
    host = await a_person(running, "host")
    _, token = await running.live.database.write(issue_terminal, "Porte 1")
    cookie = host.headers["Cookie"]
    if kept == "terminal":
        cookie = f"{running.cookie('terminal')}={token}"
    pages = [("page", "b!live!2026-11-21!"), ("page", "d!live!door!"), ("page", "e!test!door!")]
    mine, refused = {"session": ("b", {"d", "e"}), "terminal": ("d", {"b", "e"})}[kept]

    response = await running.client.get("/live", params=pages, headers={"Cookie": cookie})
    events = Ear(response)

    assert {(await events.next()).to for _ in refused} == refused
    await seat(running)
    told = await events.until("row" if kept == "session" else "change")
    assert told.to == mine
    response.close()


async def test_a_door_app_of_the_test_environment_gets_only_test_events(running):
    _, token = await running.test.database.write(issue_terminal, "Porte 1")
    cookie = f"{running.cookie('terminal-test')}={token}"
    pages = [("page", "a!live!door!"), ("page", "b!test!door!")]

    response = await running.client.get("/live", params=pages, headers={"Cookie": cookie})

    events = Ear(response)
    assert [((told := await events.next()).to, told.kind) for _ in range(2)] == [
        ("a", "over"), ("b", "totals"),
    ]  # fmt: skip
    response.close()
