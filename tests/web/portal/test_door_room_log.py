"""The door log in the portal: shown, exported and checked."""

import gc
import io
import json
import zipfile

import pytest

from appliance.door_log.verification import check_file
from appliance.store.scan_log import list_log_keys
from tests.spreadsheets import formulas_in
from tests.web.portal.door_room import a_pass, a_terminal, scan
from tests.web.portal.people import a_person
from web.portal.door import export


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
    _, text = await a_pass(running, customer_name="x;=cmd|x Idrissi")
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
        assert formulas_in(path.read_text("utf-8-sig")) == []
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
