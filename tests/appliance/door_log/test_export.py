"""An export tells everything that is stored, and a spreadsheet runs none of it."""

import json

import pytest

from appliance.clock import parse_instant
from appliance.door_log.statement import FORMAT
from tests.spreadsheets import formulas_in, rows_of


def lines_of(path):
    return path.read_bytes().split(b"\n")[:-1]


async def test_a_line_tells_the_scan_in_both_times_with_the_names_still_stored(log):
    path = await log.export("jsonl")

    scan = json.loads(lines_of(path)[1])
    assert {name: scan[name] for name in ("seq", "scan_id", "result", "admitted", "terminal")} == {
        "seq": 1, "scan_id": "-scan-0", "result": "checked_in", "admitted": 1,
        "terminal": "Porte, «nord»",
    }  # fmt: skip
    assert (scan["at_utc"], scan["at_venue"]) == (
        "2026-11-21T19:00:00.000+00:00", "2026-11-21T19:00:00.000+00:00"
    )  # fmt: skip
    assert (scan["table"], scan["first_name"], scan["access_code"]) == (
        "Terrasse 1", "=Salma", "SVC-7K2M"
    )  # fmt: skip
    assert scan["previous_hash"] == "00" * 32
    assert json.loads(lines_of(path)[2])["previous_hash"] == scan["hash"]


async def test_venue_time_is_that_of_the_day_of_the_scan(log):
    await log.change("UPDATE scan SET at = 1767222000000 WHERE seq = 12")  # 31 December 2025

    scan = json.loads(lines_of(await log.export("jsonl"))[12])

    assert scan["at_utc"] == "2025-12-31T23:00:00.000+00:00"
    assert scan["at_venue"] == "2026-01-01T00:00:00.000+01:00"


async def test_a_terminals_impossible_clock_is_told_as_it_said_and_stops_nothing(log):
    scan = json.loads(lines_of(await log.export("jsonl"))[11])

    assert (scan["device_at"], scan["device_at_utc"]) == (10**17, None)


@pytest.mark.proves("S21")
async def test_no_cell_of_the_csv_is_a_formula_and_no_line_is_broken(log):
    path = await log.export("csv")

    content = path.read_bytes()
    text = content.decode("utf-8-sig")
    rows = rows_of(text)
    assert len(rows) == content.count(b"\n") == content.count(b"\r\n") == 13
    assert formulas_in(text) == []
    columns = dict(zip(rows[0], rows[12], strict=True))
    assert columns["reason"] == "'@Salma est ressortie"
    assert columns["admitted"] == "'-1"


async def test_the_statement_says_what_was_asked_for_and_what_is_there(log):
    path = await log.export("jsonl")

    signed = json.loads(lines_of(path)[-1])
    said = signed["statement"]
    assert said["header"] == json.loads(lines_of(path)[0])["header"]
    assert (said["header"]["format"], said["header"]["environment"]) == (FORMAT, "live")
    assert (said["count"], said["firstSeq"], said["lastSeq"]) == (12, 1, 12)
    assert said["lastHash"] == json.loads(lines_of(path)[12])["hash"]


async def test_a_period_is_an_unbroken_stretch_even_where_the_clock_was_set_back(log):
    at = parse_instant("2026-11-21T19:00:00Z")
    await log.change("UPDATE scan SET at = at + 1000 WHERE seq BETWEEN 4 AND 9")
    await log.change("UPDATE scan SET at = at - 2000 WHERE seq = 6")

    path = await log.export("jsonl", since=at + 1, until=at + 2000)

    scans = [json.loads(line) for line in lines_of(path)[1:-1]]
    assert [scan["seq"] for scan in scans] == [4, 5, 6, 7, 8, 9]


async def test_an_empty_log_is_signed_too(log, kind):
    path = await log.export(kind, since=10**15)

    assert (await log.check(path)).findings == []
