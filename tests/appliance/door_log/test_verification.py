"""Whatever is done to an exported door log, the check names the line."""

import json
from pathlib import Path

import pytest

from appliance.door_log.verification import check_file, check_rows, statement_file
from appliance.store.scan_log import list_scans
from appliance.store.scans import find_broken_link
from appliance.store.signing_keys import add_signing_key
from tests.appliance.door_log.tampering import Lines, another


async def test_an_export_is_whole(log, lines):
    checked = await log.check(lines.path)

    assert (checked.findings, checked.count) == ([], 12)


@pytest.mark.parametrize("number", [2, 7, 12, 13])
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


def cut(first, count=1):
    def change(lines):
        del lines.lines[first - 1 : first - 1 + count]

    return change


def move(before, after):
    return lambda lines: lines.lines.insert(after - 1, lines.lines.pop(before - 1))


def copy(before, after):
    return lambda lines: lines.lines.insert(after - 1, lines[before])


def forge(lines):
    copy(7, 7)(lines)
    lines.change(7, "result")


def change_and_remove(lines):
    lines.change(4, "result")
    cut(9)(lines)


@pytest.mark.parametrize(
    ("tamper", "found"),
    [(cut(2), [(2, "scan 1 was removed")]), (cut(7), [(7, "scan 6 was removed")]),
     (cut(13), [(13, "scan 12 was removed")]), (cut(5, 4), [(5, "scans 4 to 7 were removed")]),
     (move(6, 7), [(7, "scan 5 stands out of order")]),
     (move(4, 11), [(11, "scan 3 stands out of order")]),
     (copy(6, 10), [(10, "scan 5 was added")]), (forge, [(7, "scan 6 was changed or added")]),
     (change_and_remove, [(4, "scan 3 was changed"), (9, "scan 8 was removed")])],
)  # fmt: skip
async def test_removed_moved_copied_and_forged_lines_are_named(log, lines, tamper, found):
    tamper(lines)
    lines.save()

    findings = (await log.check(lines.path)).findings

    assert [f.line for f in findings] == [line for line, _ in found]
    assert all(f.sentence.startswith(said) for f, (_, said) in zip(findings, found, strict=True))


async def test_the_header_is_named_when_it_was_changed(log):
    lines = Lines(await log.export("jsonl"), "jsonl")
    lines.change(1, "header")
    lines.save()

    assert [finding.line for finding in (await log.check(lines.path)).findings] == [1]


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


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"{}\n", b"\x00" * 5000, b"a,b\r\n1,2\r\n", b'{"header":{}}\n', b"[" * 10**5],
)
async def test_what_is_no_door_log_is_said_to_be_none(log, tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)

    assert (await log.check(path)).findings


SLIPPED_IN = """INSERT INTO scan (seq, scan_id, terminal_id, at, kind, result, admitted, verdict,
        hash)
    SELECT 13, 'forged', terminal_id, at, kind, result, admitted, verdict, hash
    FROM scan WHERE seq = 12"""


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        ("UPDATE scan SET result = 'party_added' WHERE seq = 1", 1, "scan 1 was changed"),
        ("UPDATE scan SET staff_id = 'somebody' WHERE seq = 1", 1, "scan 1 was changed"),
        ("UPDATE scan SET reservation_id = NULL WHERE seq = 2", 2, "scan 2 was changed"),
        ("UPDATE scan SET scan_id = 'other' WHERE seq = 2", 2, "scan 2 was changed"),
        ("UPDATE scan SET at = at + 1 WHERE seq = 3", 3, "scan 3 was changed"),
        ("UPDATE scan SET admitted = 9 WHERE seq = 5", 5, "scan 5 was changed"),
        ("UPDATE scan SET hash = randomblob(32) WHERE seq = 5", 5, "scan 5 was changed"),
        ("UPDATE scan SET device_at = NULL WHERE seq = 11", 11, "scan 11 was changed"),
        ("UPDATE scan SET read_hash = NULL WHERE seq = 11", 11, "scan 11 was changed"),
        ("UPDATE scan SET undoes = 1 WHERE seq = 12", 12, "scan 12 was changed"),
        ("DELETE FROM scan WHERE seq = 5", 6, "scan 5 was removed"),
        ("DELETE FROM scan WHERE seq IN (5, 6)", 7, "scans 5 to 6 were removed"),
        (SLIPPED_IN, 13, "scan 13 was changed"),
        ("UPDATE scan SET reason = 'x', verdict = '{}'", None, ""),
        ("DELETE FROM scan WHERE seq < 5", None, ""),
    ],
)
async def test_the_log_in_the_box_is_checked_row_by_row(log, change, line, said):
    await log.change(change)

    read = log.box.live.database.read
    findings = (await read(lambda reader: check_rows(list_scans(reader, 0, 99)))).findings

    assert [finding.line for finding in findings] == ([] if line is None else [line])
    assert all(finding.sentence.startswith(said) for finding in findings)
    assert await read(find_broken_link) == line


async def test_a_cut_off_end_is_found(log, lines):
    content = lines.path.read_bytes()
    for length in range(0, len(content), 211):
        lines.path.write_bytes(content[:length])

        assert (await log.check(lines.path)).findings, length


async def test_a_statement_that_is_gone_is_found(log, lines):
    if lines.kind == "jsonl":
        del lines.lines[-1]
        lines.save()
    else:
        statement_file(lines.path).unlink()

    findings = (await log.check(lines.path)).findings

    assert [f.line for f in findings] == [14 if lines.kind == "jsonl" else 0]
    assert "statement" in findings[0].sentence


async def test_the_statement_of_another_export_is_found(log, lines):
    other = await log.export(lines.kind, until=10**15, now="2026-11-22T10:00:00.000Z")
    await log.change("DELETE FROM scan WHERE seq = 12")
    other = await log.export(lines.kind, now="2026-11-22T11:00:00.000Z")
    if lines.kind == "jsonl":
        lines[14] = Lines(other, "jsonl").lines[-1]
        lines.save()
    else:
        statement_file(lines.path).write_bytes(statement_file(other).read_bytes())

    findings = (await log.check(lines.path)).findings

    assert [f.line for f in findings] == [14 if lines.kind == "jsonl" else 0]


async def test_every_change_of_the_statement_is_found_at_its_line(log, lines):
    place = lines.path if lines.kind == "jsonl" else statement_file(lines.path)
    line = 14 if lines.kind == "jsonl" else 0
    *before, last = place.read_text("utf-8-sig").rstrip("\n").split("\n")
    signed = json.loads(last)
    for name in [*signed["statement"], "signature"]:
        changed = json.loads(last)
        part = changed if name == "signature" else changed["statement"]
        part[name] = another(part[name])
        text = json.dumps(changed, sort_keys=True, separators=(",", ":"))
        place.write_text("\n".join([*before, text]) + "\n", "utf-8")

        findings = (await log.check(lines.path)).findings

        assert line in {f.line for f in findings}, name


async def test_another_boxs_key_is_refused(log, lines):
    checked = check_file(lines.path, lambda _: [bytes(32)])

    assert [f.line for f in checked.findings] == [14 if lines.kind == "jsonl" else 0]


async def test_an_export_stays_genuine_after_the_key_was_changed(log, lines):
    await log.box.live.database.write(add_signing_key, log.box.live.keyring)

    assert (await log.check(lines.path)).findings == []


COMMAS = Path(__file__).parent / "exports" / "commas.csv"


def test_an_export_from_before_semicolons_is_verified_and_each_changed_cell_found(tmp_path):
    said = json.loads(statement_file(COMMAS).read_text())
    keys = [bytes.fromhex(said["publicKey"])]

    checked = check_file(COMMAS, lambda _: keys)

    assert (checked.count, checked.findings) == (3, [])
    other = tmp_path / COMMAS.name
    statement_file(other).write_text(json.dumps(said))
    for place in (b"-scan-9", b"'=Salma", b"SVC-7K2M", b"cbe02f39", b"first_name", b","):
        other.write_bytes(COMMAS.read_bytes().replace(place, b"x", 1))
        assert check_file(other, lambda _: keys).findings, place
