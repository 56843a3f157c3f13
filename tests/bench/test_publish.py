"""What is said of speed is what was measured: table and picture belong to the JSON that is kept."""

import json

from tests.bench.publish import (
    PICTURE,
    PROMISES,
    RESULTS,
    fingerprint,
    latest,
    table,
    with_table,
    write,
)


def kept():
    return json.loads(latest().read_text("utf-8"))


def test_the_table_in_the_promises_says_what_the_kept_run_found():
    text = PROMISES.read_text("utf-8")

    assert with_table(text, table(kept())) == text


def test_the_picture_of_growth_shows_the_kept_run_and_is_small():
    drawn = PICTURE.read_text("utf-8")

    assert f"figures {fingerprint(kept())}" in drawn
    assert len(drawn) < 60_000


def test_one_run_is_kept_under_its_date_with_its_machine_and_no_place_of_it():
    [only] = RESULTS.glob("*.json")
    text = only.read_text("utf-8")

    assert only.stem == kept()["date"]
    assert set(kept()["machine"]) == {
        "cpu", "cores", "memory_mib", "disk", "filesystem", "kernel", "python", "sqlite", "apsw",
    }  # fmt: skip
    assert not [place for place in ("/root", "/home", "/work", "/tmp") if place in text]


def test_the_kept_run_is_a_whole_one():
    assert list(kept()["growth"]["POST"]) == ["0", "1000", "10000", "100000", "1000000"]
    assert {"POST /v1/reservations", "PocketBase create"} <= set(kept()["loads"])
    assert all(kept()[part] for part in ("dispatcher", "board", "door", "binary", "idle"))


def test_a_table_takes_the_place_of_the_one_before():
    text = (
        "# Fast\n<!-- bench table: begin; by a command -->\nold\n<!-- bench table: end -->\nmore\n"
    )

    renewed = with_table(text, "new\n| a |")

    assert renewed == text.replace("old", "new\n| a |")
    assert with_table(renewed, "new\n| a |") == renewed


def test_a_result_takes_the_place_of_the_one_before_with_four_digits(tmp_path):
    write(tmp_path, {"date": "2026-01-01", "p50": 1.0})

    written = write(tmp_path, {"date": "2026-02-01", "p50": [1.23456, 12345678]})

    assert list(tmp_path.iterdir()) == [written]
    assert json.loads(written.read_text()) == {"date": "2026-02-01", "p50": [1.235, 12345678]}
