"""Templates, styles and scripts: lines that fit a window, and nothing styled twice."""

from itertools import combinations_with_replacement
from pathlib import Path

ROOT = Path(__file__).parents[1]
STYLES = ROOT / "web" / "frontend" / "styles"
LINE_MAX = 120
EQUAL_LINES_MAX = 8


def test_no_line_of_a_template_style_or_script_is_longer_than_a_window():
    kinds = {".html", ".txt", ".css", ".ts", ".mjs"}
    folders = [*(ROOT / "appliance").rglob("templates"), ROOT / "appliance" / "backup",
               ROOT / "web" / "templates", STYLES, ROOT / "web" / "frontend" / "src"]  # fmt: skip
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in kinds]

    assert len(files) > 100
    assert [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if len(line) > LINE_MAX
    ] == []


def test_no_rules_are_repeated_in_the_styles():
    styles = {path.relative_to(STYLES): lines_of(path) for path in sorted(STYLES.rglob("*.css"))}

    assert len(styles) > 20
    assert [
        f"{one} and {other}: {equal[0]} …"
        for (one, lines), (other, others) in combinations_with_replacement(styles.items(), 2)
        for equal in equal_runs(lines, others)
    ] == []


def test_a_rule_that_is_repeated_is_found():
    rule = [".card {", *(f"  --{name}: 1px;" for name in "abcdefg"), "}"]

    assert equal_runs(rule, ["/* A comment */", *rule, ".other {"]) == [rule]
    assert equal_runs([*rule, ".other {", *rule], [*rule, ".other {", *rule]) != []
    assert equal_runs(rule, rule[1:]) == []


def lines_of(path: Path) -> list[str]:
    lines = (line.strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line]


def equal_runs(one: list[str], other: list[str]) -> list[list[str]]:
    """Return the runs of lines, one longer than allowed, that stand at two places."""
    length = EQUAL_LINES_MAX + 1
    places: dict[tuple[str, ...], list[int]] = {}
    for start in range(len(other) - length + 1):
        places.setdefault(tuple(other[start : start + length]), []).append(start)
    is_same = one == other
    return [
        one[start : start + length]
        for start in range(len(one) - length + 1)
        for place in places.get(tuple(one[start : start + length]), ())
        if not is_same or start < place
    ]
