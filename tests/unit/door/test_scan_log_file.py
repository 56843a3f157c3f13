"""An export tells everything that is stored, and its check finds the first line that is wrong."""

import io
import json
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from appliance.door.check_in import check_in, undo_check_in
from appliance.door.guest_pass import add_signing_key, list_signing_keys
from appliance.door.scan import Reading, Scan
from appliance.door.scan_log import find_broken_link
from appliance.door.scan_log_file import NOT_AN_EXPORT, Checked, Export, check_export
from appliance.door.terminals import get_terminal, issue_terminal
from tests.spreadsheets import formulas_in, rows_of
from tests.unit.arrivals import add_reservation

SATURDAY = date(2026, 11, 21)


def fill(tx):
    """Twelve scans: ten ladies of one party, a refusal and an undo."""
    terminal = get_terminal(tx, issue_terminal(tx, "Porte, «nord»")[0])
    guest = add_reservation(tx, guests=20, customer_name="=Salma Idrissi", access_code="SVC-7K2M")
    for n in range(10):
        scan = Scan(f"-scan-{n}", Reading("list", (guest.id,)), arrivals=1, device_at=tx.now + n)
        check_in(tx, terminal, scan, 120)
    refused = Reading("other", refused="unknown_code", read_hash=bytes(32))
    check_in(tx, terminal, Scan("refused", refused, device_at=10**17), 120)
    undo_check_in(tx, terminal, "-scan-1", "@Salma\r\nest ressortie")


@dataclass
class Log:
    """The log of a box, its exports and their check."""

    box: object

    async def export(self, kind="jsonl", *, evening=None):
        """The bytes of an export."""
        live, keyring = self.box.live.database, self.box.live.keyring
        log = await live.read(Export, "live", keyring, kind, evening, evening)
        content = log.begin()
        while page := await live.read(log.page):
            content += page
        assert log.count == log.total
        return content + log.end()

    async def change(self, sql):
        """Reach past the code into the table."""
        await self.box.live.database.write(lambda tx: tx.execute(sql))

    async def check(self, content):
        """Check a file with the keys of the box."""
        keys = [key.public_key for key in await self.box.live.database.read(list_signing_keys)]
        return check_export(io.BytesIO(content), lambda _: keys)


@pytest.fixture
async def log(box) -> Log:
    await box.live.database.write(fill)
    return Log(box)


def lines_of(content):
    return content.split(b"\n")[:-1]


def joined(lines):
    return b"".join(line + b"\n" for line in lines)


def changed(line, name):
    """The line with another value for one field, of the same form where it has one."""
    values = json.loads(line)
    values[name] = another(values[name])
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()


def another(value):
    if isinstance(value, dict):
        return {**value, "environment": "test"}
    if isinstance(value, int):
        return value + 1
    if value is None:
        return "7"
    last = {"0": "1"}.get(value[-1], "0")
    return value[:-1] + last


async def test_a_line_tells_the_scan_in_both_times_with_the_names_still_stored(log):
    lines = lines_of(await log.export())

    scan = json.loads(lines[1])
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
    assert json.loads(lines[2])["previous_hash"] == scan["hash"]
    refused = json.loads(lines[11])  # by a terminal with an impossible clock
    assert (refused["device_at"], refused["device_at_utc"]) == (10**17, None)


async def test_venue_time_is_that_of_the_day_of_the_scan(log):
    await log.change("UPDATE scan SET at = 1767222000000 WHERE seq = 12")  # 31 December 2025

    scan = json.loads(lines_of(await log.export())[12])

    assert scan["at_utc"] == "2025-12-31T23:00:00.000+00:00"
    assert scan["at_venue"] == "2026-01-01T00:00:00.000+01:00"


async def test_no_cell_of_the_csv_is_a_formula_and_no_line_is_broken(log):
    content = await log.export("csv")

    text = content.decode("utf-8-sig")
    rows = rows_of(text)
    assert len(rows) == content.count(b"\n") == content.count(b"\r\n") == 13
    assert formulas_in(text) == []
    columns = dict(zip(rows[0], rows[12], strict=True))
    assert columns["reason"] == "'@Salma est ressortie"
    assert columns["admitted"] == "'-1"


async def test_an_export_is_whole_and_its_statement_says_what_is_there(log):
    content = await log.export()

    lines = lines_of(content)
    found = await log.check(content)
    assert (found.line, found.count) == (None, 12)
    said = json.loads(lines[-1])["statement"]
    assert said["header"] == json.loads(lines[0])["header"]
    assert (said["header"]["format"], said["header"]["environment"]) == ("svc-door-log-v1", "live")
    assert (said["count"], said["firstSeq"], said["lastSeq"]) == (12, 1, 12)
    assert said["lastHash"] == json.loads(lines[12])["hash"]


async def test_a_period_is_an_unbroken_stretch_even_where_the_clock_was_set_back(log):
    await log.change("UPDATE scan SET at = at - 86400000 WHERE seq < 4")
    await log.change("UPDATE scan SET at = at + 86400000 WHERE seq IN (6, 10, 11, 12)")

    lines = lines_of(await log.export(evening=SATURDAY))

    assert [json.loads(line)["seq"] for line in lines[1:-1]] == [4, 5, 6, 7, 8, 9]


async def test_an_empty_log_is_signed_too(log):
    content = await log.export(evening=date(2027, 1, 1))

    assert (await log.check(content)).line is None


@pytest.mark.parametrize("number", [1, 2, 7, 12, 13, 14])
async def test_every_change_of_a_field_is_found_at_its_line(log, number):
    lines = lines_of(await log.export())
    for name in json.loads(lines[number - 1]):
        tampered = list(lines)
        tampered[number - 1] = changed(tampered[number - 1], name)

        assert (await log.check(joined(tampered))).line == number, name


async def test_a_changed_byte_anywhere_is_found_at_its_line_or_the_next(log):
    content = await log.export()
    for place in range(0, len(content), 97):
        tampered = bytearray(content)
        tampered[place] ^= 1

        found = (await log.check(bytes(tampered))).line

        line = content[:place].count(b"\n") + 1
        assert found in {line, line + 1}, place


def cut(first, count=1):
    def change(lines):
        del lines[first - 1 : first - 1 + count]

    return change


def move(before, after):
    return lambda lines: lines.insert(after - 1, lines.pop(before - 1))


def copy(before, after):
    return lambda lines: lines.insert(after - 1, lines[before - 1])


def change_and_remove(lines):
    lines[3] = changed(lines[3], "result")
    del lines[8]


@pytest.mark.parametrize(
    ("tamper", "line"),
    [(cut(2), 2), (cut(7), 7), (cut(13), 13), (cut(5, 4), 5), (move(6, 7), 6), (move(4, 11), 4),
     (copy(6, 10), 10), (change_and_remove, 4), (copy(14, 15), 15), (cut(14), 14)],
)  # fmt: skip
async def test_the_first_line_after_a_removed_moved_or_copied_one_is_named(log, tamper, line):
    lines = lines_of(await log.export())
    tamper(lines)

    assert (await log.check(joined(lines))).line == line


async def test_a_cut_off_end_is_found(log):
    content = await log.export()
    for length in range(0, len(content), 211):
        assert (await log.check(content[:length])).line, length


async def test_the_statement_of_another_export_is_refused(log):
    lines = lines_of(await log.export())
    await log.change("DELETE FROM scan WHERE seq = 12")
    lines[-1] = lines_of(await log.export())[-1]

    assert (await log.check(joined(lines))).line == 14


async def test_a_line_that_was_changed_in_the_box_before_the_export_is_found(log):
    await log.change("UPDATE scan SET admitted = 9 WHERE seq = 5")

    assert (await log.check(await log.export())).line == 6


async def test_an_export_stays_genuine_after_the_key_was_changed(log):
    content = await log.export()
    await log.box.live.database.write(add_signing_key, log.box.live.keyring)

    assert (await log.check(content)).line is None


async def test_erased_texts_leave_the_chain_whole_and_appear_nowhere(log):
    await log.change("UPDATE scan SET reason = NULL, verdict = '{}'")
    await log.change("UPDATE reservation SET customer_name = NULL, access_code = NULL")

    content = await log.export()

    assert (await log.check(content)).line is None
    assert b"Salma" not in content
    assert b"SVC-" not in content


async def test_a_log_whose_oldest_scans_were_erased_is_exported_whole_from_there(log):
    await log.change("DELETE FROM scan WHERE seq <= 4")

    lines = lines_of(await log.export())

    assert (await log.check(joined(lines))).line is None
    lines[2] = changed(lines[2], "result")
    assert (await log.check(joined(lines))).line == 3


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"{}\n", b"\x00" * 5000, b"a,b\r\n1,2\r\n", b'{"header":{}}\n', b"[" * 10**5],
)
async def test_what_is_no_door_log_is_said_to_be_none(log, content):
    assert await log.check(content) == Checked(0, 1, NOT_AN_EXPORT)


SLIPPED_IN = """INSERT INTO scan (seq, scan_id, terminal_id, at, kind, result, admitted, verdict,
        hash)
    SELECT 13, 'forged', terminal_id, at, kind, result, admitted, verdict, hash
    FROM scan WHERE seq = 12"""


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("UPDATE scan SET result = 'party_added' WHERE seq = 1", 1),
        ("UPDATE scan SET staff_id = 'somebody' WHERE seq = 1", 1),
        ("UPDATE scan SET reservation_id = NULL WHERE seq = 2", 2),
        ("UPDATE scan SET scan_id = 'other' WHERE seq = 2", 2),
        ("UPDATE scan SET at = at + 1 WHERE seq = 3", 3),
        ("UPDATE scan SET admitted = 9 WHERE seq = 5", 5),
        ("UPDATE scan SET hash = randomblob(32) WHERE seq = 5", 5),
        ("UPDATE scan SET device_at = NULL WHERE seq = 11", 11),
        ("UPDATE scan SET read_hash = NULL WHERE seq = 11", 11),
        ("UPDATE scan SET undoes = 1 WHERE seq = 12", 12),
        ("DELETE FROM scan WHERE seq = 5", 6),
        ("DELETE FROM scan WHERE seq IN (5, 6)", 7),
        (SLIPPED_IN, 13),
        ("UPDATE scan SET reason = 'x', verdict = '{}'", None),
        ("DELETE FROM scan WHERE seq < 5", None),
    ],
)
async def test_the_log_in_the_box_is_checked_row_by_row(log, change, line):
    await log.change(change)

    assert await log.box.live.database.read(find_broken_link) == line


SEALED = Path(__file__).parent / "exports" / "sealed.jsonl"


def test_an_export_of_the_first_version_is_verified():
    content = SEALED.read_bytes()
    key = bytes.fromhex(json.loads(lines_of(content)[-1])["publicKey"])

    found = check_export(io.BytesIO(content), lambda _: [key])

    assert (found.count, found.line) == (12, None)
