"""The end of an exported door log: its statement, whose signature covers the whole."""

import json
from pathlib import Path

import pytest

from appliance.door_log.verification import check_file, statement_file
from appliance.store.signing_keys import add_signing_key
from tests.appliance.door_log.tampering import Lines, another


@pytest.fixture
async def lines(log, kind):
    return Lines(await log.export(kind), kind)


async def test_a_cut_off_end_is_found(log, lines):
    content = lines.path.read_bytes()
    for length in range(0, len(content), 211):
        lines.path.write_bytes(content[:length])

        assert (await log.check(lines.path)).findings, length


async def test_the_end_cut_off_before_the_statement_is_found(log):
    lines = Lines(await log.export("jsonl"), "jsonl")
    del lines.lines[9:13]
    lines.save()

    findings = (await log.check(lines.path)).findings

    assert [(f.line, f.sentence) for f in findings] == [
        (10, "scans 9 to 12 were removed before it")
    ]


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


async def test_a_change_that_was_sealed_and_chained_again_breaks_the_signature(log):
    whole = await log.export("jsonl")
    said = Lines(whole, "jsonl").lines[-1]
    await log.change("UPDATE scan SET result = 'party_added', hash = randomblob(32) WHERE seq = 12")
    forged = Lines(await log.export("jsonl", now="2026-11-22T10:00:00.000Z"), "jsonl")
    forged[14] = said
    forged.save()

    assert (await log.check(forged.path)).findings


async def test_another_boxs_key_is_refused(log, lines):
    checked = check_file(lines.path, lambda _: [bytes(32)])

    assert [f.line for f in checked.findings] == [14 if lines.kind == "jsonl" else 0]


async def test_an_export_stays_genuine_after_the_key_was_changed(log, lines):
    await log.box.live.database.write(add_signing_key, log.box.live.keyring)

    assert (await log.check(lines.path)).findings == []


async def test_something_after_the_statement_is_found(log):
    path = await log.export("jsonl")
    lines = Lines(path, "jsonl")
    lines.lines.append(lines[13])
    lines.save()

    assert (await log.check(path)).findings


def test_an_export_from_before_semicolons_is_verified():
    path = Path(__file__).parent / "exports" / "commas.csv"
    said = json.loads(statement_file(path).read_text())

    checked = check_file(path, lambda _: [bytes.fromhex(said["publicKey"])])

    assert (checked.count, checked.findings) == (3, [])


def test_each_changed_cell_of_such_an_export_is_found(tmp_path):
    path = Path(__file__).parent / "exports" / "commas.csv"
    said = json.loads(statement_file(path).read_text())
    for place in (b"-scan-9", b"'=Salma", b"SVC-7K2M", b"cbe02f39", b"first_name", b","):
        other = tmp_path / path.name
        statement_file(other).write_text(json.dumps(said))
        other.write_bytes(path.read_bytes().replace(place, b"x", 1))

        assert check_file(other, lambda _: [bytes.fromhex(said["publicKey"])]).findings, place
