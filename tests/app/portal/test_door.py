"""The door's pages: terminals, conflicts, signing keys, the door log."""

import json
import re
from urllib.parse import quote

import pytest

from appliance.door.guest_pass import pass_text
from appliance.reservations.rows import get_reservation
from tests.app.portal.door_room import a_pass, a_terminal, scan
from tests.app.portal.seating import rows
from tests.app.terminal_bridge.apart import a_scan
from tests.spreadsheets import formulas_in


async def test_the_displayed_code_pairs_a_phone_and_the_page_updates(running, manager):
    status, page, _ = await manager.post("/portal/door/pair", {"name": "Porte 2", "role": "search"})
    assert status == 200
    assert "<svg" in page
    code = re.search(r"/door#pair=([\w-]{43})<", page)[1]
    mark = re.search(r"/portal/door/pairings/([0-9a-f]{64})", page)[1]
    _, before, _ = await manager.get(f"/portal/door/pairings/{mark}", **{"HX-Request": "true"})

    async with running.client.post("/terminal/v1/pair", json={"code": code}) as response:
        paired = await response.json()

    assert paired["terminal"]["name"] == "Porte 2"
    assert paired["terminal"]["role"] == "search"
    _, after, _ = await manager.get(f"/portal/door/pairings/{mark}", **{"HX-Request": "true"})
    assert "hx-trigger" in before
    assert "hx-trigger" not in after


async def test_a_terminal_token_is_shown_once_and_authenticates(running, manager):
    status, page, headers = await manager.post(
        "/portal/door/issue", {"name": "Tourniquet", "role": "scan"}
    )

    assert (status, headers["Cache-Control"]) == (200, "no-store")
    token = re.search(r"term_[0-9a-f]{64}", page)[0]
    assert (await scan(running, token, "SVC-2222"))[0] == 200
    assert token not in (await manager.get("/portal/door"))[1]


async def test_renaming_a_terminal_or_changing_its_role_applies_to_its_next_request(
    running, manager
):
    terminal_id, token = await a_terminal(running, role="scan")
    path = f"/portal/door/terminals/{terminal_id}"
    seen = re.search(r'name="seen" value="(\w+)"', (await manager.get(path))[1])[1]

    status, _, _ = await manager.post(path, {"seen": seen, "name": "Bar", "role": "search"})

    assert status == 303
    async with running.client.get(
        "/terminal/v1/evening", headers={"Authorization": f"Bearer {token}"}
    ) as response:
        assert response.status == 200
    again, _, _ = await manager.post(path, {"seen": seen, "name": "Other", "role": "scan"})
    assert again == 409


async def test_a_revoked_terminal_is_refused_at_its_next_request(running, manager):
    terminal_id, token = await a_terminal(running)
    assert (await scan(running, token, "SVC-2222"))[0] == 200
    status, _, _ = await manager.post(f"/portal/door/terminals/{terminal_id}/revoke")
    assert status == 303
    assert (await scan(running, token, "SVC-3333", "scan-2"))[0] == 401


async def test_a_conflict_shows_what_to_do_and_disappears_when_acknowledged(running, manager):
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
    page = (await manager.get("/portal/door"))[1]
    assert f"/portal/reservations/{reservation.id}" in page
    [(conflict_id,)] = await rows(running, "SELECT id FROM door_conflict")

    status, _, _ = await manager.post(f"/portal/door/conflicts/{conflict_id}/acknowledge")

    assert status == 303
    assert f"{conflict_id}/acknowledge" not in (await manager.get("/portal/door"))[1]
    assert await rows(running, "SELECT acknowledged_by FROM door_conflict") == [
        (f"staff:{manager.id}",)
    ]


async def test_old_passes_stay_valid_after_the_signing_key_is_replaced(running, manager):
    _, text = await a_pass(running)
    _, token = await a_terminal(running)
    status, _, _ = await manager.post("/portal/door/keys/rotate")
    assert status == 303
    assert (await scan(running, token, text))[1]["result"] == "checked_in"


async def test_after_a_leak_old_passes_are_revoked_and_the_link_shows_a_valid_one(
    running, owner, manager
):
    reservation, old = await a_pass(running)
    _, token = await a_terminal(running)

    assert (await manager.post("/portal/door/keys/leaked"))[0] == 403
    status, _, _ = await owner.post("/portal/door/keys/leaked")

    assert status == 303
    assert (await scan(running, token, old, "old"))[1]["result"] == "revoked"
    renewed = await running.live.database.read(get_reservation, reservation.id)
    assert renewed.generation == 1
    fresh = await running.live.database.read(pass_text, running.live.keyring, "live", renewed)
    assert (await scan(running, token, fresh, "new"))[1]["result"] == "checked_in"


async def test_the_door_log_shows_an_evening_with_its_totals_and_filters(running, manager):
    _, text = await a_pass(running, customer_name="Salma <i>Idrissi</i>")
    terminal_id, token = await a_terminal(running, "Porte 1")
    _, other = await a_terminal(running, "Porte 2")
    await scan(running, token, text, "one")
    await scan(running, other, "https://elsewhere.example/x", "two")
    await scan(running, other, text, "three")

    everything = (await manager.get("/portal/door/log"))[1]
    refused = (await manager.get("/portal/door/log?result=refused"))[1]
    at_one = (await manager.get(f"/portal/door/log?terminal={terminal_id}"))[1]
    named = (await manager.get("/portal/door/log?q=salma"))[1]
    none = (await manager.get("/portal/door/log?q=nobody"))[1]
    yesterday = (await manager.get("/portal/door/log?date=2026-11-20"))[1]

    assert "<b>3</b> scans" in everything
    assert "<b>2</b> people let in" in everything
    assert "<b>2</b> scans refused" in everything
    assert "Salma &lt;i&gt;" in everything
    pages = (everything, refused, at_one, named, none, yesterday)
    assert [page.count('<th scope="row">') for page in pages] == [3, 2, 1, 2, 0, 0]


@pytest.mark.parametrize("text", ["elodie", "ÉLODIE B", "svc-7k2", "t1"])
async def test_a_guest_is_found_in_the_door_log_in_any_spelling(running, manager, text):
    _, scanned = await a_pass(running, customer_name="Élodie Bernard", access_code="SVC-7K2M")
    await scan(running, (await a_terminal(running))[1], scanned)

    page = (await manager.get(f"/portal/door/log?q={quote(text)}"))[1]

    assert page.count('<th scope="row">') == 1


async def test_a_scan_uploaded_the_next_day_is_listed_in_the_evening_when_it_happened(
    running, manager
):
    _, text = await a_pass(running, date="2026-11-20")
    _, token = await a_terminal(running)
    scans = [a_scan(code=text, at="2026-11-20T20:00:00.000Z")]
    headers = {"Authorization": f"Bearer {token}"}
    async with running.client.post(
        "/terminal/v1/sync", json={"scans": scans}, headers=headers
    ) as response:
        assert response.status == 200

    evenings = [
        (await manager.get(f"/portal/door/log?date={day}"))[1]
        for day in ("2026-11-20", "2026-11-21")
    ]

    assert [page.count('<th scope="row">') for page in evenings] == [1, 0]
    assert ["<b>1</b> scan" in page for page in evenings] == [True, False]


async def test_a_long_evening_is_paginated_and_any_page_number_is_accepted(running, manager):
    _, token = await a_terminal(running)
    for number in range(101):
        await scan(running, token, "https://elsewhere.example/x", f"scan-{number}")

    first = (await manager.get("/portal/door/log"))[1]
    second = (await manager.get("/portal/door/log?page=2"))[1]

    assert "page=2" in first
    assert second.count('<th scope="row">') == 1
    for page in ("0", "-1", "99999999999999999999", "x", "²"):
        assert (await manager.get(f"/portal/door/log?page={page}"))[0] == 200
    for day in ("2026-02-30", "0001-01-01", "9999-12-31", "x"):
        assert (await manager.get(f"/portal/door/log?date={day}"))[0] == 400


@pytest.mark.parametrize("kind", ["json", "csv"])
async def test_an_evening_of_the_door_log_can_be_exported(running, kind, manager):
    _, text = await a_pass(running, customer_name="x;=cmd|x Idrissi")
    _, token = await a_terminal(running)
    await scan(running, token, text)
    await scan(running, token, "=1+1", "two")

    async with running.client.get(
        f"/portal/door/log/export?format={kind}&date=2026-11-21", headers=manager.headers
    ) as response:
        content, disposition = await response.read(), response.headers["Content-Disposition"]

    assert disposition == f'attachment; filename="door-log-live-2026-11-21.{kind}"'
    if kind == "csv":
        assert formulas_in(content.decode("utf-8-sig")) == []
        assert content.count(b"\r\n") == 3
        return
    assert [row["result"] for row in json.loads(content)] == ["checked_in", "unknown_code"]
