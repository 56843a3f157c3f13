import pytest

from appliance.door.check_in import add_scan
from appliance.door.terminals import issue_terminal


@pytest.fixture
def log(box):
    """A box whose live door log has 2,500 refused scans: more than a page."""
    with box.transaction() as tx:
        terminal_id = issue_terminal(tx, "Porte 1")[0]
        for n in range(1, 2501):
            add_scan(
                tx,
                {"scan_id": f"scan-{n}", "terminal_id": terminal_id, "kind": "other",
                 "result": "unknown_code", "admitted": 0, "verdict": "{}"},
            )  # fmt: skip
    return box


def execute(box, sql):
    with box.transaction() as tx:
        tx.execute(sql)


def test_an_export_is_checked_with_the_box_and_without_it(log, program, tmp_path):
    file = tmp_path / "door.jsonl"
    assert log("doorlog", "export", "--environment", "live", "--output", str(file)) == 0, log.err
    key = log.out.split()[-1]
    assert "2500 scans" in log.out
    assert file.stat().st_mode & 0o777 == 0o600

    assert log("doorlog", "verify", str(file)) == 0, log.out
    assert "2500" in log.out
    tampered = tmp_path / "tampered.jsonl"
    tampered.write_bytes(file.read_bytes().replace(b'"scan_id":"scan-77"', b'"scan_id":"scan-78"'))
    assert log("doorlog", "verify", str(tampered)) == 1
    assert log.out.startswith("line 78: ")

    program.data = tmp_path / "elsewhere"
    assert program("doorlog", "verify", str(file), "--public-key", key) == 0, program.out
    assert program("doorlog", "verify", str(file), "--public-key", "ab" * 32) == 1
    assert "signature" in program.out
    assert "--public-key" in program.complaint("doorlog", "verify", str(file))


def test_a_csv_is_written_too(log, tmp_path):
    file = tmp_path / "door.csv"

    assert log("doorlog", "export", "--environment", "live", "--format", "csv",
               "--output", str(file)) == 0, log.err  # fmt: skip

    assert file.read_bytes().count(b"\r\n") == 2501
    assert log("doorlog", "verify", str(file)) == 1
    assert log.out == f"{file}: this is not an exported door log (a CSV is not signed)\n"
    file.write_bytes(b"")
    assert log("doorlog", "verify", str(file)) == 1
    assert "not an exported door log" in log.out


def test_the_log_in_the_box_is_checked(log):
    assert log("doorlog", "verify", "--environment", "live") == 0
    assert log.out == "the door log of live is complete and unchanged: 2500 scans\n"

    execute(log, "UPDATE scan SET admitted = 7 WHERE seq = 2100")

    assert log("doorlog", "verify", "--environment", "live") == 1
    assert log.out.startswith("scan 2100: ")


def test_a_period_counts_in_evenings(log, tmp_path):
    execute(log, "UPDATE scan SET at = 1795327199999 WHERE seq <= 3")  # 22 Nov, 05:59:59 there
    execute(log, "UPDATE scan SET at = 1795327200000 WHERE seq > 3")
    ask = ("doorlog", "export", "--environment", "live")

    log(*ask, "--from", "2026-11-21", "--to", "2026-11-21")
    saturday = log.out.count("\n") - 2
    log(*ask, "--from", "2026-11-22")

    assert (saturday, log.out.count("\n") - 2) == (3, 2497)
