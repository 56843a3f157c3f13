"""Reading the README: its sections, its tables, its examples, and the tests that it names."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def section(title: str) -> str:
    """What stands under a heading, with the headings below it."""
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*)", README, re.MULTILINE | re.DOTALL)
    assert found, f"the README has no section {title!r}"
    return re.split(rf"^#{{1,{len(found[1])}}} ", found[2], flags=re.MULTILINE)[0]


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


@cache
def functions_of(path: str) -> frozenset[str]:
    """Names as pytest writes them: `test_x`, or `TestClass::test_x`."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    named = [("", node) for node in tree.body]
    named += [(f"{kind.name}::", node) for kind in classes for node in kind.body]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(prefix + node.name for prefix, node in named if isinstance(node, functions))


def references(text: str) -> list[tuple[str, str]]:
    return re.findall(r"(tests/[\w/]+\.py)::((?:\w+::)?\w+)", text)


def example(language: str) -> str:
    """The one fenced example in that language, as it would be pasted."""
    [found] = re.findall(rf"^( *)```{language}\n(.*?)^ *```", README, re.MULTILINE | re.DOTALL)
    indent, text = found
    return re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)
