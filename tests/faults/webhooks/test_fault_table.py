"""Every row of the fault table of the delivery engine, and the tests that show it.

A row without a test fails here, and so does a name that pytest does not find.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ENGINE, FAULTS = "tests/appliance/webhooks", "tests/faults/webhooks"

# row -> files, each with tests that are named by the start of their names
TABLE = {
    1: {f"{FAULTS}/test_slow_receivers.py": ["test_a_receiver_that_never_answers"]},
    2: {f"{FAULTS}/test_slow_receivers.py": ["test_an_answer_just_in_time"]},
    3: {f"{FAULTS}/test_slow_receivers.py": ["test_a_body_in_drops_after_200"]},
    4: {f"{FAULTS}/test_slow_receivers.py": ["test_a_head_in_drops"]},
    5: {f"{FAULTS}/test_bad_answers.py": ["test_an_answer_of_any_size"]},
    6: {f"{FAULTS}/test_bad_answers.py": ["test_a_broken_connection"]},
    7: {
        f"{FAULTS}/test_bad_answers.py": [
            "test_a_connection_that_died_while_idle",
            "test_a_receiver_that_closes_after_each_answer",
        ],
        f"{ENGINE}/test_client.py": ["test_there_is_no_second_redial"],
    },
    8: {f"{FAULTS}/test_certificates.py": ["test_row_8_"]},
    9: {f"{FAULTS}/test_egress.py": ["test_row_9_"]},
    10: {f"{FAULTS}/test_bad_answers.py": ["test_each_odd_answer"]},
    11: {f"{FAULTS}/test_egress.py": ["test_row_11_"]},
    12: {f"{FAULTS}/test_egress.py": ["test_row_12_"]},
    13: {f"{ENGINE}/test_retries.py": ["test_six_attempts_on_the_ladder"]},
    14: {f"{FAULTS}/test_kill.py": ["test_no_delivery_is_lost_to_a_kill"]},
    15: {f"{FAULTS}/test_power_cut.py": ["test_after_a_cut"]},
    16: {f"{FAULTS}/test_outage.py": ["test_what_waited", "test_a_fresh_event"]},
    17: {f"{ENGINE}/test_offline_gate.py": ["test_row_17_"]},
    18: {f"{FAULTS}/test_replay.py": ["test_row_18_"]},
    19: {f"{ENGINE}/test_clock_gate.py": ["test_row_19_"]},
    20: {
        "tests/faults/test_disk.py": ["test_a_disk_that_fails_under_load"],
        f"{ENGINE}/test_pauses.py": ["test_outcomes_that_cannot_be_written"],
        "tests/appliance/store/test_database.py": [
            "test_a_full_disk_refuses_writes",
            "test_writing_while_another_process_holds",
        ],
    },
    21: {f"{FAULTS}/test_changes.py": ["test_row_21_"]},
    22: {f"{FAULTS}/test_changes.py": ["test_row_22_"]},
    23: {f"{FAULTS}/test_changes.py": ["test_row_23_"]},
    24: {f"{FAULTS}/test_replay.py": ["test_row_24_"]},
    25: {
        f"{FAULTS}/test_stop.py": ["test_a_stop_with_32_in_flight"],
        "tests/faults/test_stop.py": ["test_a_stop_under_load"],
    },
    26: {"tests/faults/test_stop.py": ["test_a_second_process"]},
    27: {"tests/appliance/upkeep/test_retention.py": ["test_row_27_"]},
    28: {
        "tests/journeys/test_start_and_idle.py": ["test_an_idle_box"],
        f"{ENGINE}/test_pauses.py": ["test_nothing_happens_when_nothing_is_due"],
    },
    29: {f"{FAULTS}/test_names.py": ["test_a_hazardous_name", "test_half_a_character"]},
    30: {f"{FAULTS}/test_signatures.py": ["test_row_30_"]},
}


@pytest.fixture(scope="module")
def collected():
    """The tests of all files of the table, as pytest finds them: "file::test"."""
    files = sorted({file for row in TABLE.values() for file in row})
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]
    return [line for line in found.stdout.splitlines() if "::" in line]


def test_the_table_has_all_thirty_rows():
    assert sorted(TABLE) == list(range(1, 31))


@pytest.mark.parametrize("row", TABLE)
def test_each_row_is_shown_by_tests_that_exist(row, collected):
    named = [f"{file}::{start}" for file, starts in TABLE[row].items() for start in starts]

    assert named
    assert [name for name in named if not any(one.startswith(name) for one in collected)] == []
