"""A conflict about somebody whom the box cannot tell: the page says whom to ask."""

from tests.terminal_bridge.apart import a_scan
from tests.web.portal.door_room import a_terminal
from tests.web.portal.people import a_person


async def test_it_leads_to_no_reservation_and_says_whom_to_ask(running):
    person = await a_person(running, "manager")
    _, token = await a_terminal(running, "Porte 1")
    async with running.client.post(
        "/terminal/v1/sync",
        json={"scans": [a_scan(code="Zoubida")]},
        headers={"Authorization": f"Bearer {token}"},
    ) as response:
        assert response.status == 200, await response.text()

    status, page, _ = await person.get("/portal/door")

    assert status == 200
    assert "They are counted nowhere: ask at that door whom it let in" in page
    assert "/portal/reservations/None" not in page
