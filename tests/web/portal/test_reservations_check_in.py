"""Check-ins by hand, on the page of a reservation."""

import asyncio

import pytest

from tests.web.portal.people import a_person
from tests.web.portal.seating import as_it_is, path_of, rows, seat, value_of


@pytest.fixture
async def host(running):
    return await a_person(running, "host", "Yasmine")


async def test_a_check_in_by_hand_counts_who_came_and_names_who_did_it(running, host):
    salma = await seat(running, guests=4)
    _, page, _ = await host.get(path_of(salma))

    status, _, headers = await host.post(
        path_of(salma, "check-in"), {"token": value_of(page, "token"), "arrivals": "3"}
    )

    assert (status, headers["Location"]) == (303, f"{path_of(salma)}?note=saved")
    assert (await as_it_is(running, salma)).arrived == 3
    assert "3 guests came in · Yasmine" in (await host.get(path_of(salma)))[1]
    [(staff_id, admitted)] = await rows(running, "SELECT staff_id, admitted FROM scan")
    assert (staff_id, admitted) == (host.id, 3)


async def test_a_check_in_form_that_is_sent_twice_counts_once(running, host):
    salma = await seat(running, guests=4)
    form = {"token": "a-token-of-the-page", "arrivals": "2"}

    await asyncio.gather(*(host.post(path_of(salma, "check-in"), form) for _ in range(5)))

    assert (await as_it_is(running, salma)).arrived == 2


async def test_amber_asks_for_a_reason_and_the_reason_stands_in_the_door_log(running, host):
    salma = await seat(running, status="pending")

    status, page, _ = await host.post(path_of(salma, "check-in"), {"arrivals": "1"})
    assert status == 409
    assert "Let in all the same, because" in page
    assert value_of(page, "arrivals") == "1"
    assert (await as_it_is(running, salma)).arrived == 0

    status, _, _ = await host.post(
        path_of(salma, "check-in"),
        {"token": value_of(page, "token"), "arrivals": "1", "reason": "pays inside"},
    )
    assert status == 303
    assert (await as_it_is(running, salma)).arrived == 1
    assert ("pays inside", 1) in await rows(running, "SELECT reason, admitted FROM scan")


async def test_more_than_the_party_needs_a_reason_too(running, host):
    salma = await seat(running, arrived=2, checked_in_at=running.clock.now())
    assert "Let more people in" in (await host.get(path_of(salma)))[1]

    await host.post(path_of(salma, "check-in"), {"arrivals": "1", "reason": "a cousin"})

    assert (await as_it_is(running, salma)).arrived == 3


async def test_a_check_in_is_taken_back_with_a_reason_and_only_once(running, host):
    salma = await seat(running)
    await host.post(path_of(salma, "check-in"), {"arrivals": "2"})
    _, page, _ = await host.get(path_of(salma))
    seen = value_of(page, "seen")

    status, page, _ = await host.post(path_of(salma, "undo"), {"seen": seen, "reason": " "})
    assert (status, "Please write why" in page) == (400, True)
    status, _, _ = await host.post(path_of(salma, "undo"), {"seen": seen, "reason": "wrong party"})
    assert status == 303
    assert (await as_it_is(running, salma)).arrived == 0
    status, _, _ = await host.post(path_of(salma, "undo"), {"seen": seen, "reason": "again"})
    assert status == 409
    now = (await as_it_is(running, salma)).version
    status, page, _ = await host.post(path_of(salma, "undo"), {"seen": now, "reason": "again"})
    assert (status, "there is nothing to take back" in page) == (409, True)


async def test_the_door_checks_in_and_sees_no_more_than_a_terminal_does(running):
    door = await a_person(running, "door")
    salma = await seat(running, notes="Near the window")

    _, page, _ = await door.get(path_of(salma))
    for hidden in ("Idrissi", "+212", "salma@example.com", "History", "Payments", "/amend",
                   "/cancel", "/move"):  # fmt: skip
        assert hidden not in page
    for shown in ("Salma", "T1", "SVC-2345", "2 guests", "Near the window"):
        assert shown in page

    assert (await door.post(path_of(salma, "check-in"), {"arrivals": "2"}))[0] == 303
    assert (await door.post(path_of(salma, "cancel"), {"seen": 2}))[0] == 403
    status, page, _ = await door.post(path_of(salma, "undo"), {"reason": ""})
    assert status == 400
    assert "Idrissi" not in page
