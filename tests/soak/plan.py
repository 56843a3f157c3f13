"""The steps of `make soak`, in order. They take less than an hour on two idle cores."""

import sys
from dataclasses import dataclass

PYTHON = sys.executable
PYTEST = (PYTHON, "-m", "pytest", "-v", "-s", "--tb=short", "-p", "no:cacheprovider", "-n", "0",
          "-m", "")  # fmt: skip
POWER = "tests/promises/power_cut"
FAULTS = "tests/promises"


@dataclass(frozen=True)
class Step:
    """One row of the table. A step with `beside` mostly sleeps, so others may run meanwhile."""

    name: str
    tries: str
    command: tuple[str, ...]
    seconds: float  # time limit in seconds, after which the step fails
    beside: bool = False


def pytest_step(name, tries, seconds, *paths, beside=False):
    """A step that runs tests in full."""
    return Step(name, tries, (*PYTEST, *paths), seconds, beside)


def program_step(name, tries, seconds, module, *argv):
    """A step that runs a program."""
    return Step(name, tries, (PYTHON, "-m", module, *argv), seconds)


PLAN = (
    pytest_step(
        "idle", "ten idle minutes: no processor, no timer, no commit", 720,
        "tests/journeys/test_start_and_idle.py", beside=True,
    ),
    pytest_step(
        "cuts", "power cuts and failing syncs at any write, also while the box recovers", 780,
        f"{POWER}/test_power_cuts.py",
    ),
    pytest_step(
        "upgrades", "power cuts and kills in upgrades of the schema and the program", 540,
        f"{POWER}/test_migration_cuts.py", f"{FAULTS}/test_update_kill.py",
    ),
    pytest_step(
        "kills", "kill -9, stops and a failing disk under mixed load", 1200,
        f"{FAULTS}/test_kill.py",
    ),
    pytest_step(
        "deliveries", "kill -9 among deliveries, letters, bridges and stops", 900,
        f"{FAULTS}/webhooks/test_kill.py", f"{FAULTS}/test_letters.py",
        f"{FAULTS}/test_bridge_kill.py",
    ),
    pytest_step(
        "mirror", "a million changes of 20 boxes in a mirror, with kills of both ends", 1200,
        f"{FAULTS}/test_mirror_kill.py",
    ),
    program_step(
        "contended", "bookings and scans that fight for few tables, at full speed", 780,
        "tests.soak.mixed", "contended",
    ),
    program_step(
        "mixed", "partners, doors, house, guests and 500 who stall, for ten minutes", 780,
        "tests.soak.mixed", "evening",
    ),
    program_step(
        "door", "scans from eight terminals, and passes that were tampered with", 600,
        "tests.soak.door",
    ),
    pytest_step(
        "surroundings", "disks, locks, networks and processes that misbehave", 420,
        f"{FAULTS}/test_full_disk.py", f"{FAULTS}/test_network_cuts.py",
        f"{FAULTS}/test_corruption.py", f"{FAULTS}/test_restore.py", f"{FAULTS}/test_checker.py",
    ),
    pytest_step(
        "month", "thirty days in time-lapse, in 256 MiB and with 256 files", 240,
        f"{FAULTS}/test_thirty_days.py",
    ),
    pytest_step(
        "flooding", "half-open, slow and huge requests, and a thousand handshakes a second", 120,
        f"{FAULTS}/test_flooding.py",
    ),
    pytest_step(
        "receivers", "the fault table of the delivery engine, with the real ten seconds", 420,
        f"{FAULTS}/webhooks", f"--ignore={FAULTS}/webhooks/test_kill.py",
    ),
    pytest_step(
        "attacks", "wild requests, spoiled input, smuggling and canaries", 540,
        "tests/promises/attacks", "tests/journeys/test_schemathesis.py",
    ),
)  # fmt: skip
