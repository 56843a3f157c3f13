"""Terminals and conflicts on the portal page about the door."""

import re

import pytest

from appliance.actions.offer_pairing import offer_pairing
from tests.terminal_bridge.apart import a_scan
from tests.web.portal.door_room import a_pass, a_terminal, rows, scan
from tests.web.portal.people import a_person


async def test_the_code_that_is_shown_pairs_a_phone_and_the_page_notices(running):
    person = await a_person(running, "manager")
    status, page, _ = await person.post("/portal/door/pair", {"name": "Porte 2", "role": "search"})
    assert status == 200
    assert "<svg" in page
    code = re.search(r"/door#pair=([\w-]{43})<", page)[1]
    mark = re.search(r"/portal/door/pairings/([0-9a-f]{64})", page)[1]
    _, before, _ = await person.get(f"/portal/door/pairings/{mark}", **{"HX-Request": "true"})

    async with running.client.post("/terminal/v1/pair", json={"code": code}) as response:
        paired = await response.json()

    assert paired["terminal"]["name"] == "Porte 2"
    assert paired["terminal"]["role"] == "search"
    _, after, _ = await person.get(f"/portal/door/pairings/{mark}", **{"HX-Request": "true"})
    assert "every 2s" in before
    assert "Paired." in after
    assert "hx-trigger" not in after
    assert "Porte 2" in (await person.get("/portal/door"))[1]


async def test_a_code_that_ran_out_is_said_to_and_asks_no_more(running):
    person = await a_person(running, "manager")
    _, page, _ = await person.post("/portal/door/pair", {"name": "Porte 2", "role": "scan"})
    mark = re.search(r"/portal/door/pairings/([0-9a-f]{64})", page)[1]

    running.clock.advance(601)

    _, after, _ = await person.get(f"/portal/door/pairings/{mark}")
    assert "no longer good" in after
    assert "every 2s" not in after


async def test_an_open_offer_stands_in_the_list_until_it_is_taken_or_over(running):
    person = await a_person(running, "manager")
    await running.live.database.write(offer_pairing, "Terrasse", "scan")
    assert "waits for its phone" in (await person.get("/portal/door"))[1]

    running.clock.advance(601)

    assert "waits for its phone" not in (await person.get("/portal/door"))[1]


async def test_a_token_is_shown_once_and_opens_the_door(running):
    person = await a_person(running, "manager")

    status, page, headers = await person.post(
        "/portal/door/issue", {"name": "Tourniquet", "role": "scan"}
    )

    assert (status, headers["Cache-Control"]) == (200, "no-store")
    token = re.search(r"term_[0-9a-f]{64}", page)[0]
    assert (await scan(running, token, "SVC-2222"))[0] == 200
    assert token not in (await person.get("/portal/door"))[1]


async def test_a_terminal_is_renamed_and_its_role_holds_from_its_next_request(running):
    person = await a_person(running, "manager")
    terminal_id, token = await a_terminal(running, role="scan")
    path = f"/portal/door/terminals/{terminal_id}"
    seen = re.search(r'name="seen" value="(\w+)"', (await person.get(path))[1])[1]

    status, _, _ = await person.post(path, {"seen": seen, "name": "Bar", "role": "search"})

    assert status == 303
    async with running.client.get(
        "/terminal/v1/evening", headers={"Authorization": f"Bearer {token}"}
    ) as response:
        assert response.status == 200
    again, text, _ = await person.post(path, {"seen": seen, "name": "Other", "role": "scan"})
    assert again == 409
    assert "Somebody changed this meanwhile" in text


@pytest.mark.parametrize("form", [{"name": "", "role": "scan"}, {"name": "A", "role": "king"}])
async def test_a_terminal_without_a_name_or_a_known_role_is_refused(running, form):
    person = await a_person(running, "manager")

    for path in ("pair", "issue"):
        assert (await person.post(f"/portal/door/{path}", form))[0] == 400
    assert await rows(running.live, "SELECT count(*) FROM terminal") == [(0,)]


async def test_a_revoked_terminal_is_refused_at_its_next_request(running):
    person = await a_person(running, "manager")
    terminal_id, token = await a_terminal(running)
    assert (await scan(running, token, "SVC-2222"))[0] == 200

    status, _, _ = await person.post(f"/portal/door/terminals/{terminal_id}/revoke")

    assert status == 303
    assert (await scan(running, token, "SVC-3333", "scan-2"))[0] == 401
    assert "1 revoked terminal" in (await person.get("/portal/door"))[1]


async def test_what_a_terminal_says_of_itself_is_shown_and_never_as_markup(running):
    person = await a_person(running, "manager")
    _, token = await a_terminal(running, name="<b>Bar</b>")
    async with running.client.get(
        "/terminal/v1/me",
        headers={"Authorization": f"Bearer {token}", "User-Agent": "<script>x</script>/9"},
    ) as response:
        assert response.status == 200

    page = (await person.get("/portal/door"))[1]

    assert "&lt;script&gt;x&lt;/script&gt;/9" in page
    assert "<b>Bar" not in page
    assert "<script>x" not in page


async def test_a_conflict_says_what_to_do_and_goes_when_it_is_dealt_with(running):
    person = await a_person(running, "manager")
    reservation, text = await a_pass(running)
    (_, one), (_, other) = (
        await a_terminal(running, "Porte 1"),
        await a_terminal(running, "Porte 2"),
    )
    for token, scan_id in ((one, "a"), (other, "b")):
        async with running.client.post(
            "/terminal/v1/sync",
            json={"scans": [a_scan(code=text, scanId=scan_id, arrivals=2)]},
            headers={"Authorization": f"Bearer {token}"},
        ) as response:
            assert response.status == 200, await response.text()
    page = (await person.get("/portal/door"))[1]
    assert "Let in at two doors: 4 are in, 2 were booked" in page
    assert "Count the guests at the table" in page
    assert f"/portal/reservations/{reservation.id}" in page
    [(conflict_id,)] = await rows(running.live, "SELECT id FROM door_conflict")

    status, _, _ = await person.post(f"/portal/door/conflicts/{conflict_id}/acknowledge")

    assert status == 303
    assert "two doors" not in (await person.get("/portal/door"))[1]
    assert await rows(running.live, "SELECT acknowledged_by FROM door_conflict") == [
        (f"staff:{person.id}",)
    ]


async def test_the_test_environment_has_its_own_terminals_log_and_keys(running):
    person = await a_person(running, "manager")
    await a_terminal(running, "Live door")

    for path in ("", "/log", "/keys"):
        assert (await person.get(f"/test/portal/door{path}"))[0] == 200
    assert "Live door" not in (await person.get("/test/portal/door"))[1]


async def test_what_is_not_there_is_not_found(running):
    person = await a_person(running, "manager")
    unknown = "01890000-0000-7000-8000-000000000000"

    for path in (f"terminals/{unknown}", "terminals/x", "pairings/xyz"):
        assert (await person.get(f"/portal/door/{path}"))[0] == 404
    for path in (f"terminals/{unknown}/revoke", f"conflicts/{unknown}/acknowledge",
                 "conflicts/x/acknowledge"):  # fmt: skip
        assert (await person.post(f"/portal/door/{path}"))[0] == 404
