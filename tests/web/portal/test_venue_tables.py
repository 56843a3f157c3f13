"""The tables of the venue, one by one and in their order."""

import asyncio
import re

import pytest

from appliance.store.venue import get_table
from tests.builders import table_id
from tests.web.portal.people import a_person
from tests.web.portal.venue_forms import NEXT_SATURDAY, T1, field, guest, numbers, table_form


async def test_tables_move_one_place_up_and_down_and_stop_at_the_ends(running):
    person = await a_person(running, "manager")

    for number, steps in (("T3", -1), ("T1", -1), ("T6", 1), ("T5", 1)):
        status, _, headers = await person.post(
            "/portal/venue/move", {"move": f"{table_id(number)}:{steps}"}
        )
        assert status == 303
        assert table_id(number) in headers["Location"]

    assert await numbers(running.live) == ["T1", "T3", "T2", "T4", "T6", "T5"]


async def test_an_order_that_was_dragged_is_kept_and_one_of_another_time_is_not(running):
    person = await a_person(running, "manager")
    page = (await person.get("/portal/venue"))[1]
    seen = re.search(r'data-seen="(\w+)"', page)[1]
    ids = [table_id(f"T{n}") for n in (6, 5, 4, 3, 2, 1)]

    first = await person.post("/portal/venue/order", {"seen": seen, "ids": " ".join(ids)})
    second = await person.post("/portal/venue/order", {"seen": seen, "ids": " ".join(ids[::-1])})
    short = await person.post("/portal/venue/order", {"seen": seen, "ids": ids[0]})

    assert [answer[0] for answer in (first, second, short)] == [303, 409, 409]
    assert await numbers(running.live) == ["T6", "T5", "T4", "T3", "T2", "T1"]


async def test_a_table_is_edited_and_what_another_saved_meanwhile_is_not_overwritten(running):
    person = await a_person(running, "manager")
    mine, theirs = await table_form(person, name="Ma terrasse"), await table_form(person, name="X")

    first, second = await person.post(T1, mine), await person.post(T1, theirs)

    assert (first[0], second[0]) == (303, 409)
    assert "Somebody changed this meanwhile" in second[1]
    table = await running.live.database.read(get_table, table_id("T1"))
    assert table.name == "Ma terrasse"


@pytest.mark.parametrize(
    "changes",
    [
        {"number": "T2"}, {"number": ""}, {"capacity_min": "0"}, {"capacity_max": "1"},
        {"capacity_max": "x"}, {"minimum_spend": "-1"}, {"type": ""}, {"name": "x" * 101},
    ],
)  # fmt: skip
async def test_a_table_that_cannot_be_is_refused(running, changes):
    person = await a_person(running, "manager")

    status, _, _ = await person.post(T1, await table_form(person, **changes))

    assert status == 400
    assert (await running.live.database.read(get_table, table_id("T1"))).capacity_max == 4


@pytest.mark.proves("decision: Tables, slots or rules that change under reservations?")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"capacity_max": "3"}, "more guests than the table seats"),
        ({"bookable": ""}, "the table cannot be booked any more"),
    ],
)
async def test_coming_reservations_are_shown_before_a_table_is_saved(running, changes, words):
    person = await a_person(running, "manager")
    coming = await guest(running, guests=4, date=NEXT_SATURDAY)
    await guest(running, guests=4, table="T2", date=NEXT_SATURDAY)
    await guest(running, guests=4, status="cancelled", date=NEXT_SATURDAY)
    form = await table_form(person, **changes)
    before = await running.live.database.read(get_table, table_id("T1"))

    status, page, _ = await person.post(T1, form)

    assert status == 409
    assert "1 coming reservation is concerned" in page
    assert words in page
    assert f"/portal/reservations/{coming.id}" in page
    assert await running.live.database.read(get_table, table_id("T1")) == before
    accepted = {**form, "accepted": field(page, "accepted")}
    assert (await person.post(T1, accepted))[0] == 303
    assert "1 coming reservation does not fit" in (await person.get("/portal/venue"))[1]


async def test_all_the_same_counts_only_for_the_list_that_was_shown(running):
    person = await a_person(running, "manager")
    await guest(running, guests=4, date=NEXT_SATURDAY)
    form = await table_form(person, capacity_max="3")
    _, page, _ = await person.post(T1, form)
    await guest(running, guests=4, date="2026-11-27")

    status, again, _ = await person.post(T1, {**form, "accepted": field(page, "accepted")})

    assert status == 409
    assert "2 coming reservations are concerned" in again
    assert (await running.live.database.read(get_table, table_id("T1"))).capacity_max == 4


async def test_a_table_without_reservations_goes_and_a_used_one_stays(running):
    person = await a_person(running, "manager")
    await guest(running, status="cancelled")
    free = f"/portal/venue/tables/{table_id('T2')}"

    used_status, _, _ = await person.post(
        f"{T1}/remove", {"seen": field((await person.get(T1))[1], "seen")}
    )
    status, _, _ = await person.post(
        f"{free}/remove", {"seen": field((await person.get(free))[1], "seen")}
    )

    assert (used_status, status) == (400, 303)
    assert await numbers(running.live) == ["T1", "T3", "T4", "T5", "T6"]


async def test_ten_managers_edit_one_table_at_once_and_one_wins(running):
    person = await a_person(running, "manager")
    table = await running.live.database.read(get_table, table_id("T1"))
    forms = [await table_form(person, name=f"Nom {n}") for n in range(10)]

    answers = await asyncio.gather(*(person.post(T1, form) for form in forms))

    assert sorted(answer[0] for answer in answers) == [303] + [409] * 9
    after = await running.live.database.read(get_table, table_id("T1"))
    assert after.name != table.name
