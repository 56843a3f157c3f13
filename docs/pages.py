"""Markdown for the generated pages."""
# ruff: noqa: D103, INP001 - for a build script, not a package

import json
import re
from collections.abc import Iterable

GENERATED = "`make docs` generates this page from the code. Do not edit it."


def page(title: str, *blocks: str) -> str:
    """Return a page with a title. Empty blocks are left out."""
    return "\n\n".join(block for block in (f"# {title}", *blocks, GENERATED) if block) + "\n"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table. Bars in cells are escaped."""
    lines = [list(head), *(list(row) for row in rows)]
    texts = [[" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in lines]
    texts.insert(1, ["---"] * len(texts[0]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in texts)


def plain(text: str) -> str:
    """Escape plain text for Markdown, in which `<name>` would be HTML and `*` emphasis."""
    return re.sub(r"([<*])", r"\\\1", text)


def code(text: object) -> str:
    return f"`{text}`"


def fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def as_json(value: object) -> str:
    return fenced("json", json.dumps(value, ensure_ascii=False, indent=2))


def sentence(text: str) -> str:
    """Return the text with a capital letter at the start and a full stop at the end."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""
