import gc
import io
import json
import re
import zipfile

import pytest

from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.offer_pairing import offer_pairing
from appliance.door_log.verification import check_file
from appliance.store.guest_passes import pass_text
from appliance.store.reservations import get_reservation
from appliance.store.scan_log import list_log_keys
from tests.appliance.arrivals import add_reservation
from tests.terminal_bridge.apart import a_scan
from tests.web.portal.people import a_person
from web.portal.door import export


async def a_terminal(running, name="Front door", role="override"):
    return await running.live.database.write(issue_terminal, name, role)


async def rows(environment, sql):
    return await environment.database.read(lambda reader: list(reader.rows(sql)))


async def scan(running, token, code, scan_id="scan-1", **more):
    async with running.client.post(
        "/terminal/v1/scans",
        json={"scanId": scan_id, "code": code, **more},
        headers={"Authorization": f"Bearer {token}"},
    ) as response:
        return response.status, await response.json()


async def a_pass(running, **changes):
    reservation = await running.live.database.write(add_reservation, **changes)
    text = await running.live.database.read(pass_text, running.live.keyring, "live", reservation)
    return reservation, text


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


async def test_the_log_shows_an_evening_with_its_totals_and_filters(running):
    person = await a_person(running, "manager")
    _, text = await a_pass(running, customer_name="Salma <i>Idrissi</i>")
    terminal_id, token = await a_terminal(running, "Porte 1")
    _, other = await a_terminal(running, "Porte 2")
    await scan(running, token, text, "one")
    await scan(running, other, "https://elsewhere.example/x", "two")
    await scan(running, other, text, "three")

    everything = (await person.get("/portal/door/log"))[1]
    refused = (await person.get("/portal/door/log?result=refused"))[1]
    at_one = (await person.get(f"/portal/door/log?terminal={terminal_id}"))[1]
    named = (await person.get("/portal/door/log?q=salma"))[1]
    none = (await person.get("/portal/door/log?q=nobody"))[1]
    yesterday = (await person.get("/portal/door/log?date=2026-11-20"))[1]

    assert "<b>3</b> scans" in everything
    assert "<b>2</b> people let in" in everything
    assert "<b>2</b> refused" in everything
    assert "Salma &lt;i&gt;" in everything
    shown = [page.count('<tr><th scope="row">') for page in (everything, refused, at_one, named)]
    assert shown == [3, 2, 1, 2]
    assert "No scan fits" in none
    assert "No scan fits" in yesterday


async def test_a_long_evening_comes_in_pages_and_any_page_number_is_safe(running):
    person = await a_person(running, "manager")
    _, token = await a_terminal(running)
    for number in range(101):
        await scan(running, token, "https://elsewhere.example/x", f"scan-{number}")

    first = (await person.get("/portal/door/log"))[1]
    second = (await person.get("/portal/door/log?page=2"))[1]

    assert "Page 1 of 2" in first
    assert second.count('<tr><th scope="row">') == 1
    for page in ("0", "-1", "99999999999999999999", "x", "²"):
        assert (await person.get(f"/portal/door/log?page={page}"))[0] == 200
    for day in ("2026-02-30", "0001-01-01", "9999-12-31", "x"):
        assert (await person.get(f"/portal/door/log?date={day}"))[0] == 400


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
async def test_an_export_is_streamed_signed_and_verifies(running, tmp_path, kind):
    person = await a_person(running, "manager")
    _, text = await a_pass(running, customer_name="=cmd|x Idrissi")
    _, token = await a_terminal(running)
    await scan(running, token, text)
    await scan(running, token, "=1+1", "two")

    async with running.client.get(
        f"/portal/door/log/export?format={kind}&date=2026-11-21", headers=person.headers
    ) as response:
        content, disposition = await response.read(), response.headers["Content-Disposition"]

    assert "attachment" in disposition
    path = tmp_path / f"log.{kind}"
    if kind == "csv":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(tmp_path)
            path = tmp_path / archive.namelist()[0]
        assert b",=" not in path.read_bytes()
    else:
        path.write_bytes(content)
    keys = await running.live.database.read(list_log_keys)
    checked = check_file(path, lambda _header: keys)
    assert (checked.count, checked.findings) == (2, [])


def test_a_download_that_was_given_up_sends_nothing_when_it_is_cleared_away():
    sent = []
    gathered = export._Gathered(sent.append)
    gathered.write(b"the rest of a log")

    gathered.close()
    del gathered
    gc.collect()

    assert sent == []


async def test_an_export_of_an_empty_log_is_an_empty_signed_file(running):
    person = await a_person(running, "manager")

    async with running.client.get("/portal/door/log/export", headers=person.headers) as response:
        *_, last = (await response.text()).strip().split("\n")

    assert json.loads(last)["statement"]["count"] == 0


async def test_a_log_that_was_changed_is_found_and_a_whole_one_is_said_to_be(running):
    person = await a_person(running, "manager")
    _, token = await a_terminal(running)
    for number in range(3):
        await scan(running, token, "https://elsewhere.example/x", f"scan-{number}")
    assert "The log is whole: 3 scans, unbroken." in (await person.get("/portal/door/log/check"))[1]

    await running.live.database.write(
        lambda tx: tx.execute("UPDATE scan SET result = 'checked_in' WHERE seq = 2")
    )

    assert "Scan 2" in (await person.get("/portal/door/log/check"))[1]


async def test_a_new_signing_key_leaves_old_passes_good(running):
    person = await a_person(running, "manager")
    _, text = await a_pass(running)
    _, token = await a_terminal(running)

    status, _, _ = await person.post("/portal/door/keys/rotate")

    assert status == 303
    assert (await scan(running, token, text))[1]["result"] == "checked_in"
    page = (await person.get("/portal/door/keys"))[1]
    assert "It is 0 days old." in page
    assert "only verifies" in page


async def test_after_a_leak_old_passes_are_revoked_and_the_link_shows_a_good_one(running):
    person = await a_person(running, "owner")
    reservation, old = await a_pass(running)
    _, token = await a_terminal(running)

    status, _, _ = await person.post("/portal/door/keys/leaked")

    assert status == 303
    assert (await scan(running, token, old, "old"))[1]["result"] == "revoked"
    renewed = await running.live.database.read(get_reservation, reservation.id)
    assert renewed.generation == 1
    fresh = await running.live.database.read(pass_text, running.live.keyring, "live", renewed)
    assert (await scan(running, token, fresh, "new"))[1]["result"] == "checked_in"


async def test_only_an_owner_replaces_a_leaked_key(running):
    person = await a_person(running, "manager")

    assert (await person.post("/portal/door/keys/leaked"))[0] == 403
    assert "wrong hands" not in (await person.get("/portal/door/keys"))[1]


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
