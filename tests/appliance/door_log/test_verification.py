"""Whatever is done to an exported door log, the check names the line."""

import pytest

from appliance.door_log.findings import Finding
from appliance.door_log.verification import check_rows
from appliance.store.scan_log import list_scans
from tests.appliance.door_log.rows import add_rows
from tests.appliance.door_log.tampering import Lines


@pytest.fixture
async def lines(log, kind):
    return Lines(await log.export(kind), kind)


async def test_an_export_is_whole(log, lines):
    checked = await log.check(lines.path)

    assert (checked.findings, checked.count) == ([], 12)


@pytest.mark.parametrize("number", range(2, 14))
async def test_every_change_of_a_field_is_found_at_its_line_and_nowhere_else(log, lines, number):
    untouched = list(lines.lines)
    for name in lines.fields(number):
        lines.lines = list(untouched)
        lines.change(number, name)
        lines.save()

        findings = (await log.check(lines.path)).findings

        assert [finding.line for finding in findings] == [number], name
        assert "changed" in findings[0].sentence


async def test_a_changed_byte_anywhere_is_found(log, lines):
    content = lines.path.read_bytes()
    for place in range(0, len(content), 97):
        changed = bytearray(content)
        changed[place] ^= 1
        if bytes(changed).split(b"\n") == content.split(b"\n"):
            continue
        lines.path.write_bytes(changed)

        findings = (await log.check(lines.path)).findings

        line = content[:place].count(b"\n") + 1
        assert findings, place
        assert abs(findings[0].line - line) <= 1 or findings[0].line == 0, (place, findings)


@pytest.mark.parametrize("number", [2, 7, 13])
async def test_a_removed_line_is_named_where_it_stood(log, lines, number):
    del lines.lines[number - 1]
    lines.save()

    findings = (await log.check(lines.path)).findings

    assert [(f.line, f.sentence) for f in findings] == [
        (number, f"scan {number - 1} was removed before it")
    ]


async def test_several_removed_lines_are_one_finding(log, lines):
    del lines.lines[4:8]
    lines.save()

    findings = (await log.check(lines.path)).findings

    assert [(f.line, f.sentence) for f in findings] == [(5, "scans 4 to 7 were removed before it")]


async def test_a_reordered_line_is_named(log, lines):
    lines.lines[5], lines.lines[6] = lines.lines[6], lines.lines[5]
    lines.save()

    findings = (await log.check(lines.path)).findings

    assert [(f.line, f.sentence) for f in findings] == [(7, "scan 5 stands out of order")]


async def test_a_line_moved_far_away_is_named_where_it_stands_now(log, lines):
    lines.lines.insert(10, lines.lines.pop(3))
    lines.save()

    findings = (await log.check(lines.path)).findings

    assert [(f.line, f.sentence) for f in findings] == [(11, "scan 3 stands out of order")]


async def test_a_copied_line_is_named(log, lines):
    lines.lines.insert(9, lines.lines[5])
    lines.save()

    findings = (await log.check(lines.path)).findings

    assert [(f.line, f.sentence) for f in findings] == [
        (10, "scan 5 was added: it stands before already")
    ]


async def test_a_forged_line_that_was_slipped_in_is_named(log, lines):
    lines.lines.insert(6, lines.lines[6])
    lines.change(7, "result")
    lines.save()

    findings = (await log.check(lines.path)).findings

    assert [(f.line, f.sentence) for f in findings] == [(7, "scan 6 was changed or added")]


async def test_two_faults_are_two_findings(log, lines):
    lines.change(4, "result")
    del lines.lines[8]
    lines.save()

    findings = (await log.check(lines.path)).findings

    assert [f.line for f in findings] == [4, 9]


async def test_a_ruin_is_given_up_and_remembers_no_more_than_a_hundred_places(log, kind):
    await log.box.live.database.write(add_rows, 1000)
    lines = Lines(await log.export(kind), kind)
    lines.lines = [line for n, line in enumerate(lines.lines) if n == 0 or n % 2 or n > 1012]
    lines.save()

    checked = await log.check(lines.path)

    assert len(checked.findings) == 100
    assert checked.count < 250


async def test_the_header_is_named_when_it_was_changed(log):
    lines = Lines(await log.export("jsonl"), "jsonl")
    lines.change(1, "header")
    lines.save()

    findings = (await log.check(lines.path)).findings

    assert findings == [Finding(1, "the header was changed")]


async def test_erased_texts_leave_the_chain_whole_and_appear_nowhere(log, lines):
    await log.change("UPDATE scan SET reason = NULL, verdict = '{}'")
    await log.change("UPDATE reservation SET customer_name = NULL, access_code = NULL")

    path = await log.export(lines.kind, now="2026-11-22T10:00:00.000Z")

    assert (await log.check(path)).findings == []
    assert b"Salma" not in path.read_bytes()
    assert b"SVC-" not in path.read_bytes()


async def test_a_log_whose_oldest_scans_were_erased_is_exported_whole_from_there(log, lines):
    await log.change("DELETE FROM scan WHERE seq <= 4")

    path = await log.export(lines.kind, now="2026-11-22T10:00:00.000Z")

    assert (await log.check(path)).findings == []
    tampered = Lines(path, lines.kind)
    tampered.change(3, "result")
    tampered.save()
    assert [f.line for f in (await log.check(path)).findings] == [3]


NO_LOGS = [b"", b"{", b"{}\n", b"\x00" * 5000, b"a,b\r\n1,2\r\n", b'{"header":{}}\n',
           b"[" * 100_000, b"{" * 100_000]  # fmt: skip


@pytest.mark.parametrize("content", NO_LOGS)
async def test_what_is_no_door_log_is_said_to_be_none(log, tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)

    assert (await log.check(path)).findings


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        ("UPDATE scan SET result = 'party_added' WHERE seq = 1", [(1, "scan 1 was changed")]),
        ("UPDATE scan SET admitted = 9 WHERE seq = 5", [(5, "scan 5 was changed")]),
        ("UPDATE scan SET hash = randomblob(32) WHERE seq = 5", [(5, "scan 5 was changed")]),
        ("DELETE FROM scan WHERE seq = 5", [(6, "scan 5 was removed before it")]),
        ("DELETE FROM scan WHERE seq IN (5, 6)", [(7, "scans 5 to 6 were removed before it")]),
        ("UPDATE scan SET reason = 'x', verdict = '{}'", []),
        ("DELETE FROM scan WHERE seq < 5", []),
    ],
)
async def test_the_log_in_the_box_is_checked_row_by_row(log, change, findings):
    await log.change(change)

    checked = await log.box.live.database.read(lambda r: check_rows(list_scans(r, 0, 99)))

    assert [(f.line, f.sentence) for f in checked.findings] == findings


async def test_two_rows_that_changed_places_are_both_named(log):
    await log.change("UPDATE scan SET seq = 90 WHERE seq = 5")
    await log.change("UPDATE scan SET seq = 5 WHERE seq = 6")
    await log.change("UPDATE scan SET seq = 6 WHERE seq = 90")

    checked = await log.box.live.database.read(lambda r: check_rows(list_scans(r, 0, 99)))

    assert {5, 6} <= {f.line for f in checked.findings}
