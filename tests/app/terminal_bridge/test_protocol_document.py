"""docs/guide/door-protocol.md describes exactly what exists in the code."""

import re
from pathlib import Path

from appliance.door.terminals import ROLES
from appliance.door.verdict import COLOURS
from terminal_bridge.api import TERMINAL_ROUTES

TEXT = (Path(__file__).parents[3] / "docs" / "guide" / "door-protocol.md").read_text("utf-8")


def rows(title: str) -> list[list[str]]:
    """Return the cells of the tables below this heading."""
    section = TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_document_describes_exactly_the_existing_calls():
    described = [row[0].strip("`") for row in rows("Calls")[1:]]

    assert sorted(described) == sorted(
        f"{method} {path.removeprefix('/terminal/v1')}" for method, path, _ in TERMINAL_ROUTES
    )


def test_every_verdict_is_listed_under_its_colour():
    described = {
        result: colour
        for colour, results in rows("Verdicts")[1:]
        for result in re.findall(r"`(\w+)`", results)
    }

    assert described == dict(COLOURS)


def test_every_role_event_type_and_conflict_type_is_documented():
    assert [row[0].strip("`") for row in rows("Who may do what")[1:]] == list(ROLES)
    assert {row[0].strip("`") for row in rows("The live feed")[1:]} == {
        "totals", "check-in", "change", "conflict", "reset", "revoked",
    }  # fmt: skip
    assert {row[0].strip("`") for row in rows("When the box cannot be reached")[1:]} == {
        "admitted_twice", "admitted_anyway",
    }  # fmt: skip
