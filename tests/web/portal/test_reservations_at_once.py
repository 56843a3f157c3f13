"""Hosts who act on the same reservations at the same time."""

import asyncio

import pytest

from tests.builders import table_id
from tests.web.portal.people import a_person
from tests.web.portal.seating import an_amendment, as_it_is, path_of, rows, seat, value_of


@pytest.fixture
async def host(running):
    return await a_person(running, "host", "Yasmine")


async def test_two_hosts_who_edit_the_same_reservation_lose_nothing(running, host):
    salma = await seat(running)
    other = await a_person(running, "host", "Karim")
    await other.post(path_of(salma, "amend"), an_amendment(salma, notes="near the music"))

    status, page, _ = await host.post(
        path_of(salma, "amend"), an_amendment(salma, guests=3, notes="gluten free")
    )

    assert status == 409
    assert "Somebody else has just changed this. Nothing was overwritten" in page
    assert value_of(page, "guests") == "3"
    assert ">gluten free</textarea>" in page
    assert "Now: near the music" in page
    assert (await as_it_is(running, salma)).notes == "near the music"

    again = an_amendment(salma, guests=3, notes="near the music, gluten free")
    status, _, _ = await host.post(
        path_of(salma, "amend"), again | {"seen": value_of(page, "seen")}
    )
    now = await as_it_is(running, salma)
    assert (status, now.guests, now.notes) == (303, 3, "near the music, gluten free")


async def test_a_host_who_does_not_know_that_the_guests_came_in_cancels_nothing(running, host):
    salma = await seat(running)
    await (await a_person(running, "door")).post(path_of(salma, "check-in"), {"arrivals": "2"})

    status, page, _ = await host.post(path_of(salma, "cancel"), {"seen": salma.version})

    assert status == 409
    assert "2/2 arrived" in page
    assert (await as_it_is(running, salma)).status == "confirmed"


async def test_ten_hosts_act_on_one_evening_at_once_and_no_update_is_lost(running):
    hosts = [await a_person(running, "host", f"Host {n}") for n in range(10)]
    salma = await seat(running, notes="")

    async def add_a_note(person, n):
        """As a person does it: look, add one's line, send; when declined, look again."""
        for _ in range(200):
            seen = await as_it_is(running, salma)
            notes = f"{seen.notes or ''}{n};"
            form = an_amendment(seen, notes=notes, guests=seen.guests)
            status, _, _ = await person.post(path_of(salma, "amend"), form)
            if status == 303:
                return
            assert status == 409
        raise AssertionError(n)

    await asyncio.gather(*(add_a_note(person, n) for n, person in enumerate(hosts)))

    now = await as_it_is(running, salma)
    assert sorted(now.notes.strip(";").split(";")) == [str(n) for n in range(10)]
    assert now.version == salma.version + 10
    assert len(await rows(running, "SELECT 1 FROM history WHERE what = 'amended'")) == 10


async def test_ten_hosts_want_the_same_free_table_and_one_gets_it(running):
    hosts = [await a_person(running, "host", f"Host {n}") for n in range(10)]
    parties = [
        await seat(running, date="2026-11-22", table=f"T{n % 5 + 1}", access_code=None,
                   slot=("19:30", "22:00")[n // 5])
        for n in range(10)
    ]  # fmt: skip
    early = parties[:5]
    forms = [{"seen": party.version, "table": table_id("T6")} for party in early]

    answers = await asyncio.gather(
        *(
            hosts[n].post(path_of(early[n % 5], "move"), forms[n % 5])
            for n in range(10)
        )
    )  # fmt: skip

    assert sorted(status for status, _, _ in answers) == [303] + [409] * 9
    tables = [(await as_it_is(running, party)).table_id for party in early]
    assert tables.count(table_id("T6")) == 1
    assert len(set(tables)) == 5
