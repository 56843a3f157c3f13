"""Staff change date, time, tables and size of a reservation in one form. Groups."""

import re

import pytest

from tests.app.portal.seating import as_it_is, path_of, rows, seat, value_of
from tests.builders import TONIGHT, table_id
from web.portal.reservation_form import suggest_more

LATER = "2026-11-28"
HELD = "SELECT date, table_id, starts, ends FROM hold ORDER BY date, table_id"
EMAILS = "SELECT kind FROM email"
EVENTS = "SELECT type FROM event ORDER BY seq"


def changes(reservation, **wanted):
    place = {"date": reservation.date, "slot": reservation.slot, "table": reservation.table_id}
    return {"seen": reservation.version, **place, "guests": reservation.guests, **wanted}


async def test_date_time_table_and_size_change_together_and_the_guest_gets_one_email(running, host):
    salma = await seat(running)
    wanted = {"date": LATER, "slot": "22:00", "table": table_id("T3"), "guests": "4", "tell": "1"}

    assert (await host.post(path_of(salma, "change"), changes(salma, **wanted)))[0] == 303

    now = await as_it_is(running, salma)
    assert (now.date, now.slot, now.table_number, now.guests) == (LATER, "22:00", "T3", 4)
    assert (now.access_code, now.pass_id) == (salma.access_code, salma.pass_id)
    assert await rows(running, HELD) == [(LATER, table_id("T3"), 22 * 60, 25 * 60)]
    assert await rows(running, EMAILS) == [("changed",)]
    assert await rows(running, EVENTS) == [("reservation.updated",)]


async def test_the_guest_is_emailed_only_if_staff_choose_so(running, host):
    salma = await seat(running)

    await host.post(path_of(salma, "change"), changes(salma, slot="22:00"))

    assert (await as_it_is(running, salma)).slot == "22:00"
    assert await rows(running, EMAILS) == []


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"table": table_id("T2")}, 409), ({"guests": "9"}, 400), ({"date": "2026-11-20"}, 400),
        ({"date": ""}, 400), ({"slot": ""}, 400), ({"slot": "23:00"}, 400), ({"table": ""}, 400),
        ({"guests": "0"}, 400),
    ],
)  # fmt: skip
async def test_a_change_is_refused_for_the_same_reasons_as_a_creation_and_keeps_the_input(
    running, host, wanted, status
):
    salma = await seat(running)
    await seat(running, table="T2", access_code=None)
    before = await rows(running, HELD)

    code, page, _ = await host.post(path_of(salma, "change"), changes(salma, **wanted))

    assert code == status
    assert '<details class="change" open>' in page
    assert (await as_it_is(running, salma)).version == salma.version
    assert await rows(running, HELD) == before
    if wanted == {"guests": "9"}:
        assert 'name="sure" value="9"' in page
        form = changes(salma, guests="9", sure="9")
        assert (await host.post(path_of(salma, "change"), form))[0] == 303


async def test_the_change_form_ignores_the_reservation_itself_when_showing_free_tables(
    running, host
):
    salma = await seat(running)
    await seat(running, table="T2", access_code=None)
    await seat(running, table="T3", access_code=None, date=LATER)

    def offered(page):
        options = page.partition('id="change-table"')[2].partition("</select>")[0]
        return [number for number in ("T1", "T2", "T3", "T4", "T5") if f">{number} " in options]

    _, page, _ = await host.get(path_of(salma))
    assert offered(page) == ["T1", "T3", "T4", "T5"]
    _, page, _ = await host.post(path_of(salma, "change"), changes(salma, date=LATER, offer="1"))
    assert offered(page) == ["T1", "T2", "T4", "T5"]
    assert value_of(page, "date") == LATER
    assert (await as_it_is(running, salma)).date == TONIGHT
    _, page, _ = await host.get(path_of(salma) + f"?slot=22:00&table={table_id('T2')}")
    assert '<details class="change" open>' in page
    assert f'<option value="{table_id("T2")}" selected>' in page


async def test_an_arrived_party_can_change_its_table_but_not_its_evening(running, host):
    salma = await seat(running, arrived=1, checked_in_at=1)

    _, page, _ = await host.get(path_of(salma))
    assert 'id="change-date"' not in page
    form = changes(salma, table=table_id("T2"))
    assert (await host.post(path_of(salma, "change"), form))[0] == 303
    assert (await as_it_is(running, salma)).table_number == "T2"


def pairs(form, *more):
    return [*((name, str(value)) for name, value in form.items()),
            *(("more", table_id(number)) for number in more)]  # fmt: skip


async def test_a_group_has_several_tables_and_one_code_and_is_shown_at_each_table(running, host):
    form = {
        "date": TONIGHT, "slot": "19:30", "table": table_id("T1"), "guests": 10,
        "customer_name": "Salma", "customer_phone": "0612345678", "token": "x" * 20,
    }  # fmt: skip
    assert (await host.post("/portal/reservations/new", pairs(form, "T2", "T3")))[0] == 303

    [(code, version)] = await rows(running, "SELECT id, version FROM reservation")
    assert [row[1] for row in await rows(running, HELD)] == sorted(
        table_id(number) for number in ("T1", "T2", "T3")
    )
    _, board, _ = await host.get("/portal/tonight")
    assert board.count(f'data-reservation="{code}"') == 3
    assert "T1, T2, T3" in board

    change = {"seen": version, "date": TONIGHT, "slot": "19:30", "table": table_id("T1"),
              "guests": 4}  # fmt: skip
    assert (await host.post(f"/portal/reservations/{code}/change", pairs(change)))[0] == 303
    assert [row[1] for row in await rows(running, HELD)] == [table_id("T1")]


async def test_tables_for_a_large_party_are_preselected_and_selected_ones_stay(running, host):
    form = {"date": TONIGHT, "slot": "19:30", "table": table_id("T2"), "guests": 10, "offer": "1"}

    def ticked(page):
        return [number for number in ("T1", "T3", "T4", "T5")
                if re.search(f'value="{table_id(number)}"\\s+checked', page)]  # fmt: skip

    _, page, _ = await host.post("/portal/reservations/new", pairs(form))
    assert ticked(page) == ["T1", "T3"]
    _, page, _ = await host.post("/portal/reservations/new", pairs(form, "T5"))
    assert ticked(page) in (["T1", "T5"], ["T3", "T5"])
    _, page, _ = await host.post("/portal/reservations/new", pairs(form | {"guests": 99}))
    assert ticked(page) == []


def test_no_additional_tables_are_suggested_for_an_unknown_table():
    assert suggest_more([], table_id("T1"), 10, []) == []
