"""Reading the documents: their tables, links, examples and headings."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def documents() -> dict[str, str]:
    """Every document of the project by its path; what stands in a fence is not left out."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted(paths)}


def rows(text: str, first_column: str) -> list[list[str]]:
    """The cells of each row of the tables that begin with `first_column`."""
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
    """The one thing that a cell says in code."""
    [found] = re.findall(r"`([^`]*)`", cell)
    return found


def fragments(text: str) -> set[str]:
    """What a link may say after #: the headings, as code hosts write them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@cache
def functions_of(path: str) -> frozenset[str]:
    """Names as pytest writes them: `test_x`, or `TestClass::test_x`."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    named = [("", node) for node in tree.body]
    named += [(f"{kind.name}::", node) for kind in classes for node in kind.body]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(prefix + node.name for prefix, node in named if isinstance(node, functions))


def example(text: str, language: str) -> str:
    """The one fenced example in that language, as it would be pasted."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return str(found)
