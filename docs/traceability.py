"""The generated list of labels, each with the tests that prove it."""
# ruff: noqa: D103, INP001 - for a build script, not a package

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from pages import page, plain

ROOT = Path(__file__).resolve().parent.parent

_KINDS = (
    ("The partner interface", re.compile(r"interface (\d+): ")),
    ("Security requirements", re.compile(r"S\d+$")),
    ("Chapters of ASVS 5", re.compile(r"V\d+$")),
    ("Invariants", re.compile(r"I\d+$")),
    ("Guarantees", re.compile(r"G\d+$")),
    ("Decisions", re.compile(r"decision: ")),
    ("Others", re.compile("")),
)


def describe_labels() -> str:
    shown: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for label, test in labels_in(path):
            shown[label].append(test)
    grouped: dict[str, list[str]] = {title: [] for title, _ in _KINDS}
    for label in sorted(shown, key=natural):
        title = next(title for title, form in _KINDS if form.match(label))
        grouped[title].append(label)
    blocks = []
    for title, labels in grouped.items():
        if labels:
            tests = ["\n".join([f"- **{plain(label)}**", *(f"  - `{each}`" for each in
                     sorted(set(shown[label])))]) for label in labels]  # fmt: skip
            blocks += [f"## {title}", "\n".join(tests)]
    return page(
        "Traceability",
        '`@pytest.mark.proves("label")` names the requirement that a test verifies. Labels `S…` '
        "and `V…` are rows in [Security](../security.md), and labels `I…` and `G…` are rows in "
        "[Promises](../promises.md). `interface N` is a section of the "
        "[interface](../partners/interface.md), and `decision` is a question in the "
        "[decisions](../decisions/README.md).",
        *blocks,
    )


def labels_in(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (label, path::test) for each marker of a test, its class and its module."""
    tree = ast.parse(path.read_text("utf-8"))
    name = path.relative_to(ROOT).as_posix()
    marks = [
        node.value for node in tree.body if isinstance(node, ast.Assign)
        and any(isinstance(to, ast.Name) and to.id == "pytestmark" for to in node.targets)
    ]  # fmt: skip
    yield from labels_below(tree, marks, name)


def labels_below(
    parent: ast.Module | ast.ClassDef, marks: list[ast.expr], name: str
) -> Iterator[tuple[str, str]]:
    for node in parent.body:
        if isinstance(node, ast.ClassDef):
            yield from labels_below(node, [*marks, *node.decorator_list], f"{name}::{node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in [*marks, *node.decorator_list] if node.name.startswith("test_") else []:
                yield from ((label, f"{name}::{node.name}") for label in proven(mark))


def proven(mark: ast.expr) -> Iterator[str]:
    """Yield the labels of every `proves(…)` in `mark`, also inside a `pytest.param`."""
    for node in ast.walk(mark):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_call and node.func.attr == "proves":
            yield from map(ast.literal_eval, node.args)


def natural(label: str) -> list[tuple[int, int | str]]:
    """Return a sort key that compares numbers by value, so that S2 comes before S10."""
    parts = re.split(r"(\d+)", label)
    return [(0, int(part)) if part.isdigit() else (1, part) for part in parts]
