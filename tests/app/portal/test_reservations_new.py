"""The form with which staff create a reservation: its choices and the email."""

import re

import pytest

from tests.app.portal.seating import rows, seat, value_of
from tests.builders import TONIGHT, table_id

NEW = "/portal/reservations/new"


def a_form(**changes):
    return {
        "token": "one-of-the-page",
        "date": TONIGHT,
        "slot": "22:00",
        "guests": "3",
        "table": table_id("T2"),
        "customer_name": "Karim Alaoui",
        **changes,
    }


def offered(page):
    """Return the free tables with enough seats. Tables with too few are in a separate group."""
    select = re.search(r'<select id="new-table".*?</select>', page, re.DOTALL)[0]
    return set(re.findall(r'value="([0-9a-f-]{36})"', select.partition("<optgroup")[0]))


async def test_a_reservation_with_only_a_name_is_created_and_announced(running, host):
    status, _, headers = await host.post(NEW, a_form())

    assert status == 303
    path, _, note = headers["Location"].partition("?")
    assert note == "note=entered"
    _, page, _ = await host.get(path)
    assert "Karim Alaoui" in page
    assert await rows(running, "SELECT type FROM event") == [("reservation.created",)]
    assert await rows(running, "SELECT 1 FROM email") == []


@pytest.mark.parametrize(("ticked", "letters"), [({"letter": "1"}, 1), ({}, 0)])
async def test_the_email_is_sent_if_its_box_is_ticked(running, host, ticked, letters):
    form = a_form(customer_email="karim@guest.example", language="ar", **ticked)
    _, _, headers = await host.post(NEW, form)
    assert ("note=entered-letter" in headers["Location"]) is bool(letters)
    assert await rows(running, "SELECT kind, recipient, language FROM email") == (
        [("confirmation", "karim@guest.example", "ar")] * letters
    )


async def test_resubmitting_a_used_form_with_another_guest_asks_first(running, host):
    await host.post(NEW, a_form())
    second = a_form(customer_name="Nadia Tazi", table=table_id("T3"))

    status, page, _ = await host.post(NEW, second)

    assert status == 409
    assert value_of(page, "customer_name") == "Nadia Tazi"
    status, _, _ = await host.post(NEW, second | {"token": value_of(page, "token")})
    assert status == 303
    assert await rows(running, "SELECT customer_name FROM reservation ORDER BY seq") == [
        ("Karim Alaoui",), ("Nadia Tazi",)
    ]  # fmt: skip


async def test_an_inactive_venue_accepts_no_reservations(running, host):
    await running.live.database.write(
        lambda tx: tx.execute("UPDATE venue SET status = 'suspended'")
    )
    status, _, _ = await host.post(NEW, a_form())
    assert status == 409


async def test_only_free_tables_with_enough_seats_are_offered(running, host):
    await seat(running, table="T1")
    await seat(running, table="T2", slot=None, access_code=None)

    _, page, _ = await host.get(f"{NEW}?date={TONIGHT}&slot=19:30&guests=4")
    assert offered(page) == {table_id(number) for number in ("T3", "T4", "T5")}
    _, page, _ = await host.get(f"{NEW}?date={TONIGHT}&slot=22:00&guests=4")
    assert offered(page) == {table_id(number) for number in ("T1", "T3", "T4", "T5")}
    _, page, _ = await host.get(f"{NEW}?date={TONIGHT}&slot=22:00&guests=5")
    assert offered(page) == set()
    assert page.count("<optgroup") == 1


async def test_too_many_guests_for_a_table_must_be_confirmed_with_that_number(running, host):
    status, page, _ = await host.post(NEW, a_form(guests="14"))
    assert status == 400
    assert 'name="sure" value="14"' in page
    assert (await host.post(NEW, a_form(guests="15", sure="14")))[0] == 400

    status, _, headers = await host.post(NEW, a_form(guests="14", sure="14"))
    assert status == 303
    path = headers["Location"].partition("?")[0].removeprefix("/portal")
    [(guests, version)] = await rows(running, "SELECT guests, version FROM reservation")
    form = {"seen": version, "guests": "16", "date": TONIGHT, "slot": "19:30",
            "table": table_id("T1")}  # fmt: skip
    status, page, _ = await host.post(f"/portal{path}/change", form)
    assert (status, guests) == (400, 14)
    assert 'name="sure" value="16"' in page
    assert (await host.post(f"/portal{path}/change", form | {"sure": "14"}))[0] == 400

    await host.post(f"/portal{path}/change", form | {"sure": "16"})
    [(guests, version)] = await rows(running, "SELECT guests, version FROM reservation")
    form |= {"seen": version, "table": table_id("T3")}
    status, page, _ = await host.post(f"/portal{path}/move", form)
    assert (status, guests) == (400, 16)
    assert 'name="sure" value="16"' in page
    assert f'<option value="{table_id("T3")}" selected>' in page

    assert (await host.post(f"/portal{path}/change", form | {"sure": "16"}))[0] == 303
    assert await rows(running, "SELECT table_id FROM reservation") == [(table_id("T3"),)]


async def test_staff_can_enter_a_past_slot_and_get_a_warning(running, host):
    running.clock.set("2026-11-21T22:30:00Z")
    _, page, _ = await host.get(f"{NEW}?date={TONIGHT}&slot=22:00")
    assert 'class="warning"' not in page

    _, page, _ = await host.get(f"{NEW}?date={TONIGHT}&slot=19:30")
    assert re.search(r'id="slot-said" role="status"><p class="warning">', page)

    status, _, _ = await host.post(NEW, a_form(slot="19:30"))
    assert status == 303


async def test_an_unavailable_slot_is_never_replaced_by_the_whole_evening(running, host):
    _, page, _ = await host.post(NEW, a_form(slot="12:00", offer="1", date="2026-11-23"))
    select = re.search(r'<select id="new-slot".*?</select>', page, re.DOTALL)[0]
    assert re.findall(r'<option value="([^"]*)" selected', select) == [""]
    assert value_of(page, "wanted") == table_id("T2")
    status, page, _ = await host.post(NEW, a_form(date="2026-11-23", slot=""))
    assert status == 400
    assert await rows(running, "SELECT 1 FROM reservation") == []


@pytest.mark.parametrize(("least", "most", "party"), [(4, 8, "4"), (2, 4, "2"), (1, 1, "1")])
async def test_the_form_of_a_board_cell_starts_with_a_party_size_that_fits_the_table(
    running, host, least, most, party
):
    await running.live.database.write(
        lambda tx: tx.execute(
            """UPDATE venue_table SET capacity_min = :least, capacity_max = :most
               WHERE number = 'T3'""",
            {"least": least, "most": most},
        )
    )

    _, page, _ = await host.get(f"{NEW}?date={TONIGHT}&table={table_id('T3')}&slot=22:00")

    assert value_of(page, "guests") == party
    assert f'value="{table_id("T3")}" selected>' in page
