"""Read the tables and examples in the documents."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def documents() -> dict[str, str]:
    """Return every document of the project by its path."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted(paths)}


def rows(text: str, first_column: str) -> list[list[str]]:
    """Return the cells of each row in the tables that begin with `first_column`."""
    found = []
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        head, _, *lines = [
            [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in block.strip().splitlines()
        ]
        if head[0] == first_column:
            found += lines
    assert found, f"there is no table of {first_column!r}"
    return found


def code(cell: str) -> str:
    """Return the only code in a cell."""
    [found] = re.findall(r"`([^`]*)`", cell)
    return found


def example(text: str, language: str) -> str:
    """Return the only fenced example in this language, as pasted from the document."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return str(found)
