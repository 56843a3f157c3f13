"""The Markdown of `docs/partners.md` as HTML: the part of CommonMark that it is written in.

Headings, paragraphs, lists, tables, fenced code, and in a line `code`, **strong**, *emphasis* and
links. A test holds the result against a complete implementation.
"""

import re
from collections.abc import Callable, Sequence
from html import escape

_FENCE = re.compile(r"```(\w*)$")
_HEADING = re.compile(r"(#{1,4}) (.+)$")
_BULLET = re.compile(r"- (.+)$")
_NUMBER = re.compile(r"\d+\. (.+)$")
_RULE = re.compile(r"\|[-| ]+\|$")
_SPANS = re.compile(
    r"`(?P<code>[^`]+)`|\[(?P<text>[^\]]+)\]\((?P<url>[^)\s]+)\)"
    r"|\*\*(?P<strong>.+?)\*\*|\*(?P<em>[^*]+)\*"
)


def render_markdown(
    text: str, block: Callable[[Sequence[str]], str | None] = lambda _lines: None
) -> str:
    """HTML without ids or classes; `block` may write any list in its own way."""
    lines = text.splitlines()
    html: list[str] = []
    while lines:
        html.append(_take(lines, block))
    return "\n".join(part for part in html if part) + "\n"


def heading_id(title: str) -> str:
    """The fragment of a heading, as code hosts make it."""
    return re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-")


def _take(lines: list[str], block: Callable[[Sequence[str]], str | None]) -> str:
    line = lines.pop(0)
    if not line.strip():
        return ""
    if fence := _FENCE.match(line):
        return _code(lines, fence[1])
    if heading := _HEADING.match(line):
        size = len(heading[1])
        return f"<h{size}>{_inline(heading[2])}</h{size}>"
    if line.startswith("|"):
        return _table([line, *_while(lines, lambda other: other.startswith("|"))])
    for pattern, tag in ((_BULLET, "ul"), (_NUMBER, "ol")):
        if pattern.match(line):
            return _list([line, *_while(lines, _has_text)], pattern, tag, block)
    more = _while(lines, _has_text)
    return f"<p>{_inline(chr(10).join([line, *more]))}</p>"


def _has_text(line: str) -> bool:
    return bool(line.strip())


def _while(lines: list[str], holds: Callable[[str], bool]) -> list[str]:
    taken = []
    while lines and holds(lines[0]):
        taken.append(lines.pop(0))
    return taken


def _code(lines: list[str], language: str) -> str:
    body = _while(lines, lambda line: line != "```")
    lines.pop(0)
    kind = f' class="language-{language}"' if language else ""
    return f"<pre><code{kind}>" + "".join(f"{escape(one)}\n" for one in body) + "</code></pre>"


def _list(
    lines: Sequence[str],
    pattern: re.Pattern[str],
    tag: str,
    block: Callable[[Sequence[str]], str | None],
) -> str:
    items: list[str] = []
    for line in lines:
        if match := pattern.match(line):
            items.append(match[1])
        else:  # an item that goes on in the next line
            items[-1] += "\n" + line.strip()
    own = block(items)
    if own is not None:
        return own
    return "\n".join([f"<{tag}>", *(f"<li>{_inline(item)}</li>" for item in items), f"</{tag}>"])


def _table(lines: Sequence[str]) -> str:
    head, *body = [
        [cell.strip() for cell in line.strip()[1:-1].split("|")]
        for line in lines
        if not _RULE.match(line)
    ]
    html = ["<table>", "<thead>", *_row(head, "th"), "</thead>", "<tbody>"]
    for cells in body:
        html += _row(cells, "td")
    return "\n".join([*html, "</tbody>", "</table>"])


def _row(cells: Sequence[str], tag: str) -> list[str]:
    return ["<tr>", *(f"<{tag}>{_inline(cell)}</{tag}>" for cell in cells), "</tr>"]


def _inline(text: str) -> str:
    html, end = [], 0
    for span in _SPANS.finditer(text):
        html += [escape(text[end : span.start()]), _span(span)]
        end = span.end()
    return "".join([*html, escape(text[end:])])


def _span(span: re.Match[str]) -> str:
    if span["code"]:
        return f"<code>{escape(span['code'])}</code>"
    if span["url"]:
        return f'<a href="{escape(span["url"])}">{_inline(span["text"])}</a>'
    if span["strong"]:
        return f"<strong>{_inline(span['strong'])}</strong>"
    return f"<em>{_inline(span['em'])}</em>"
