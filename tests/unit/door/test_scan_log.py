"""Exports of the scan log: every stored column, both times, and the remaining names."""

import json
from dataclasses import dataclass
from datetime import date

import pytest

from appliance.door.check_in import (
    check_in,
)
from appliance.door.scan import Reading, Scan
from appliance.door.scan_log import Export
from appliance.door.terminals import get_terminal, issue_terminal
from appliance.door.undo import undo_check_in
from tests.spreadsheets import formulas_in, rows_of
from tests.unit.arrivals import add_reservation

SATURDAY = date(2026, 11, 21)


def fill(tx):
    """Insert twelve scans: ten guests of one party, a refusal and an undo."""
    terminal = get_terminal(tx, issue_terminal(tx, "Porte, «nord»")[0])
    guest = add_reservation(tx, guests=20, customer_name="=Salma Idrissi", access_code="SVC-7K2M")
    for n in range(10):
        scan = Scan(f"-scan-{n}", Reading("list", (guest.id,)), arrivals=1, device_at=tx.now + n)
        check_in(tx, terminal, scan)
    refused = Reading("other", refused="unknown_code", read_hash=bytes(32))
    check_in(tx, terminal, Scan("refused", refused, device_at=10**17))
    undo_check_in(tx, terminal, "-scan-1", "@Salma\r\nest ressortie")


@dataclass
class Log:
    """The scan log of a box, and its exports."""

    box: object

    async def export(self, kind="json", *, since=None, until=None):
        """Return the bytes of an export."""
        live = self.box.live.database
        log = await live.read(Export, kind, since, until)
        content = log.begin()
        while page := await live.read(log.page):
            content += page
        return content + log.end()

    async def change(self, sql):
        """Change a row directly in the table."""
        await self.box.live.database.write(lambda tx: tx.execute(sql))


@pytest.fixture
async def log(box) -> Log:
    await box.live.database.write(fill)
    return Log(box)


async def test_a_scan_is_exported_with_both_times_and_the_stored_names(log):
    scans = json.loads(await log.export())

    scan = scans[0]
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
    refused = scans[10]  # from a terminal whose clock shows an impossible time
    assert (refused["device_at"], refused["device_at_utc"]) == (10**17, None)
    assert refused["read_hash"] == "00" * 32


async def test_venue_time_uses_the_offset_on_the_day_of_the_scan(log):
    await log.change("UPDATE scan_log SET at = 1767222000000 WHERE seq = 12")  # 31 December 2025

    scan = json.loads(await log.export())[11]

    assert scan["at_utc"] == "2025-12-31T23:00:00.000+00:00"
    assert scan["at_venue"] == "2026-01-01T00:00:00.000+01:00"


async def test_no_cell_of_the_csv_is_a_formula_or_contains_a_line_break(log):
    content = await log.export("csv")

    text = content.decode("utf-8-sig")
    rows = rows_of(text)
    assert len(rows) == content.count(b"\n") == content.count(b"\r\n") == 13
    assert formulas_in(text) == []
    columns = dict(zip(rows[0], rows[12], strict=True))
    assert columns["reason"] == "'@Salma est ressortie"
    assert columns["admitted"] == "'-1"


async def test_erased_texts_are_missing_from_the_export(log):
    await log.change("UPDATE scan_log SET reason = NULL, verdict = '{}'")
    await log.change("UPDATE reservation SET customer_name = NULL, access_code = NULL")

    content = await log.export()

    assert len(json.loads(content)) == 12
    assert b"Salma" not in content
    assert b"SVC-" not in content


async def test_an_export_period_is_counted_in_evenings(log):
    await log.change(
        "UPDATE scan_log SET at = 1795327199999 WHERE seq <= 3"
    )  # 22 November, 05:59:59 in the venue
    await log.change("UPDATE scan_log SET at = 1795327200000 WHERE seq > 3")

    saturday = json.loads(await log.export(since=SATURDAY, until=SATURDAY))
    later = json.loads(await log.export(since=date(2026, 11, 22)))

    assert [scan["seq"] for scan in saturday] == [1, 2, 3]
    assert [scan["seq"] for scan in later] == list(range(4, 13))
    assert json.loads(await log.export(since=date(2027, 1, 1))) == []


async def test_an_export_of_many_pages_contains_every_scan_once(log, monkeypatch):
    monkeypatch.setattr("appliance.door.scan_log._PAGE_ROWS", 5)

    assert [scan["seq"] for scan in json.loads(await log.export())] == list(range(1, 13))
