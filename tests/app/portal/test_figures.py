"""The figures of an evening, compared with the same weekday of earlier weeks."""

import re
from datetime import date

import pytest

from appliance.door.check_in import (
    check_in,
)
from appliance.door.scan import Reading, Scan
from appliance.door.terminals import get_portal_terminal
from appliance.door.undo import undo_check_in
from appliance.privacy import erase_guest
from appliance.reservations.change import cancel
from appliance.reservations.figures import count_figures
from appliance.reservations.leave import mark_no_show
from tests.app.portal.people import a_person
from tests.app.portal.seating import path_of, seat
from tests.builders import TONIGHT, a_body

PAGE = "/portal/tonight/figures"


async def figures_of(running):
    return await running.live.database.read(count_figures, date.fromisoformat(TONIGHT))


async def come_in(person, running, reservation, people):
    form = {"arrivals": str(people), "token": running.live.database.tokens.new_link_secret()}
    status, _, _ = await person.post(path_of(reservation, "check-in"), form)
    assert status == 303


async def test_the_figures_of_an_evening_count_arrivals_by_hour_and_source(running, host):
    running.clock.set("2026-11-21T19:40:00Z")
    status, booked, _ = await running.call("POST", "/v1/reservations", json=a_body())
    assert status == 201
    omar = await seat(running, table="T2", guests=4, access_code=None)
    gone = await seat(running, table="T3", access_code=None)
    off = await seat(running, table="T4", access_code=None)
    await running.live.database.write(mark_no_show, gone.id, actor="box")
    await running.live.database.write(cancel, off.id, actor="box")
    await come_in(host, running, omar, 3)
    running.clock.advance(20 * 60)
    await come_in(host, running, omar, 1)

    found = await figures_of(running)

    assert (found.covers, found.expected, found.shows, found.reservations) == (4, 6, 1, 2)
    assert (found.no_shows, found.cancelled, found.walk_ins, found.late) == (1, 1, 0, 1)
    assert [people for _, people in found.arrivals] == [3, 0, 1]
    assert set(found.sources) == {("Partner", 1, 0), ("manual", 1, 4)}
    assert booked["status"] == "confirmed"


async def test_a_check_in_that_was_undone_does_not_count(running, host):
    omar = await seat(running, guests=4)
    await come_in(host, running, omar, 2)
    await come_in(host, running, omar, 2)
    now = (await figures_of(running)).covers
    _, page, _ = await host.get(path_of(omar))
    seen = re.search(r'name="seen" value="(\d+)"', page)[1]

    await host.post(path_of(omar, "undo"), {"seen": seen, "reason": "Wrong guest"})

    found = await figures_of(running)
    assert (now, found.covers) == (4, found.arrivals[0][1] if found.arrivals else 0)


async def test_guests_who_go_out_and_come_back_arrive_once_even_if_their_exit_is_undone(
    running, host
):
    omar = await seat(running, guests=4)
    await come_in(host, running, omar, 3)
    await come_in(host, running, omar, 1)
    came = (await figures_of(running)).arrivals
    database = running.live.database
    terminal = await database.write(get_portal_terminal)
    reading = Reading("list", (omar.id,))
    for number, leaving in enumerate((True, False, True)):
        scan = Scan(f"walk-{number}", reading, arrivals=2, leaving=leaving)
        await database.write(check_in, terminal, scan)
    await database.write(undo_check_in, terminal, "walk-2", "Still here")

    assert (await figures_of(running)).arrivals == came == ((running.clock.now(), 4),)


async def test_the_figures_are_kept_after_guest_data_is_erased(running, host):
    salma = await seat(running)
    await come_in(host, running, salma, 2)
    before = await figures_of(running)
    await running.live.database.write(erase_guest, salma.id, actor="box")
    assert await figures_of(running) == before


async def test_the_page_compares_the_evening_with_four_earlier_ones(running, host):
    for day in (TONIGHT, "2026-11-14"):
        await seat(running, date=day, access_code=None)
    _, page, _ = await host.get(PAGE)
    figure = re.search(r'data-figure="expected"><b>(\d+)</b></td>\s*<td[^>]*>(\d+)', page)
    assert figure is not None
    assert figure.groups() == ("2", "0")  # two people in one of four weeks
    assert page.count('scope="col" class="number"') >= 6


@pytest.mark.parametrize(("role", "status"), [("door", 403), ("host", 200)])
async def test_the_figures_are_visible_to_hosts_but_not_to_door_staff(running, role, status):
    person = await a_person(running, role)
    assert (await person.get(PAGE))[0] == status
