"""docs/security.md against the tests: each row names tests that exist, or a reason."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / "docs" / name).read_text("utf-8") for name in ("security.md", "promises.md")}
CHECKLIST, STANDARD = PAGES["security.md"].split("\n## ASVS 5")
REFERENCE = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
CHAPTERS = {f"V{n}" for n in range(1, 18)}


def rows(text):
    """(first cell, last cell) of each row of its tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    cells = [line.strip("| ").split(" | ") for line in lines]
    return [(cell[0], cell[-1]) for cell in cells if cell[0] not in {"row", "sections", "promise"}]


@cache
def functions_in(path):
    if not (ROOT / path).exists():
        return frozenset()
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def test_the_checklist_has_all_thirty_three_rows():
    assert [name for name, _ in rows(CHECKLIST)] == [f"S{n}" for n in range(1, 34)]


def test_every_chapter_of_the_standard_is_answered():
    named = {match for name, _ in rows(STANDARD) for match in re.findall(r"V\d+", name)}

    assert named == CHAPTERS


@pytest.mark.parametrize("text", [CHECKLIST, STANDARD], ids=["checklist", "standard"])
def test_each_row_names_a_test_or_a_reason(text):
    without = [
        name for name, shown in rows(text)
        if not REFERENCE.search(shown) and not re.search(r"Reason: .{10,}", shown)
    ]  # fmt: skip

    assert without == []


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_is_named_exists(page):
    named = set(REFERENCE.findall(PAGES[page]))

    assert len(named) > 15
    assert {(path, name) for path, name in named if name not in functions_in(path)} == set()


@pytest.mark.parametrize("page", PAGES)
def test_every_file_and_make_target_that_is_named_exists(page):
    text = PAGES[page]
    [targets] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    paths = set(re.findall(r"`((?:tests|docs|appliance|web)/[\w./-]+)`", text))

    assert {path for path in paths if not (ROOT / path).exists()} == set()
    assert set(re.findall(r"`(?:\w+=\S+ )?make ([\w-]+)", text)) <= set(targets.split())


def test_every_promise_has_its_row():
    promised = PAGES["promises.md"].split("\n## How fast")[0]
    named = {match for name, _ in rows(promised) for match in name.split(", ")}

    assert {f"I{n}" for n in range(1, 11)} <= named
    assert all(re.fullmatch(r"[IG]\d+", name) for name in named)
