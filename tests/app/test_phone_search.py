"""Phone number search at the door finds known numbers and cannot be used to guess one (S4)."""

import pytest

from tests.app.portal.door_room import a_terminal
from tests.app.portal.people import a_person
from tests.app.portal.seating import path_of, seat
from tests.unit.arrivals import add_reservation

PHONE = "+212 600 123 457"


async def ask(running, token, query, prefix=""):
    async with running.client.get(
        f"{prefix}/terminal/v1/evening",
        params={"q": query},
        headers={"Authorization": f"Bearer {token}"},
    ) as response:
        body = await response.json()
        return response.status, len(body.get("items", [])), response.headers.get("Retry-After")


@pytest.mark.parametrize("role", ["search", "override"])
async def test_phone_searches_are_limited_per_terminal_and_name_searches_are_not(running, role):
    await seat(running, customer_phone=PHONE)
    _, token = await a_terminal(running, role=role)
    _, other = await a_terminal(running, "Back door", role)

    answers = [await ask(running, token, f"salma {n:04}") for n in range(40)]

    assert [status for status, _, _ in answers] == [200] * 30 + [429] * 10
    assert answers[-1][2] == "60"
    assert (await ask(running, token, "3457"))[0] == 429
    assert (await ask(running, token, "salma"))[:2] == (200, 1)
    assert (await ask(running, token, ""))[:2] == (200, 1)
    assert (await ask(running, other, "3457"))[:2] == (200, 1)
    running.clock.advance(60)
    assert (await ask(running, token, "3457"))[:2] == (200, 1)


async def test_searching_digit_by_digit_does_not_reveal_a_phone_number(running):
    """The attack: extend the known ending digit by digit and look for matches."""
    await running.live.database.write(add_reservation, customer_phone=PHONE, access_code=None)
    _, token = await a_terminal(running, role="search")
    digits = "212600123457"

    for length in range(1, len(digits) + 1):
        _, count, _ = await ask(running, token, f"{digits[-length:]}")
        assert count == int(length in {4, 9, 12}), length


async def test_door_staff_cannot_see_or_search_phone_numbers_in_the_portal(running):
    guest = await seat(running, customer_phone=PHONE, customer_email="salma@guest.example")
    door = await a_person(running, "door")

    for path in ("/portal/tonight", "/portal/tonight/rows", "/portal/tonight/sheet",
                 path_of(guest), f"{path_of(guest)}?part=1"):  # fmt: skip
        status, page, _ = await door.get(path)
        assert status == 200, path
        assert "123 457" not in page, path
        assert "123457" not in page, path
        assert "guest.example" not in page, path
    for path in ("/portal/reservations?q=3457", "/portal/reservations/export.csv?q=3457"):
        assert (await door.get(path))[0] == 403, path
