"""The partners' guide as a page: its sections, and its example programs where they are named.

`make` puts docs/ beside the bundled scripts, so that whatever carries those carries the guide.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup

GUIDE = Path(__file__).parent / "static" / "guide" / "partners"
_EXAMPLE = re.compile(
    r'<li><a href="(?P<path>examples/(?P<language>\w+)/(?P<name>[\w.]+))">[^<]+</a></li>\n'
)
_EXAMPLES = re.compile(r'<ul>\n(?:<li><a href="examples/\w+/[\w.]+">[^<]+</a></li>\n)+</ul>')
_NAMES = {"curl": "curl", "python": "Python", "node": "Node", "php": "PHP"}
_HEADING = re.compile(r"<h([23])>(.*?)</h\1>")
_FRENCH = re.compile(r'<h2 id="en-bref">.*?(?=\n<h2)', re.DOTALL)
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_PRE = re.compile(r"<pre>")
_TAG = re.compile(r"<[^>]+>")


@dataclass(frozen=True, slots=True)
class Guide:
    """The guide in HTML, and its sections: (fragment, title)."""

    body: Markup
    sections: Sequence[tuple[str, str]]


async def read_guide() -> Guide:
    """The guide, made on a thread when the first reader comes."""
    return await asyncio.to_thread(_make)


@cache
def _make() -> Guide:
    return make_guide((GUIDE / "guide.md").read_text("utf-8"), GUIDE)


def heading_id(title: str) -> str:
    """The fragment of a heading, as code hosts make it."""
    return re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-")


def make_guide(text: str, folder: Path) -> Guide:
    """The guide that `text` is, its examples read from `folder`. HTML in it is text."""
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    # A list of nothing but example programs is shown as the programs.
    html = _EXAMPLES.sub(lambda found: _programs(found[0], folder), html)
    html = html.partition("</h1>\n")[2]  # the page's head has the title
    sections: list[tuple[str, str]] = []

    def name(found: re.Match[str]) -> str:
        fragment = heading_id(_TAG.sub("", found[2]))
        if found[1] == "2":
            sections.append((fragment, _TAG.sub("", found[2])))
        return f'<h{found[1]} id="{fragment}">{found[2]}</h{found[1]}>'

    html = _HEADING.sub(name, html)
    html = _FRENCH.sub(r'<div lang="fr">\g<0></div>', html)
    # What may be wider than a phone scrolls by itself, with the keyboard too.
    scrolls = '<div class="scrolls" tabindex="0" role="group" aria-label="Table">'
    html = _TABLE.sub(lambda found: f"{scrolls}{found[0]}</div>", html)
    html = _PRE.sub('<pre tabindex="0">', html)
    return Guide(Markup(html), sections)  # noqa: S704 - every text in it was escaped on the way


def _programs(items: str, folder: Path) -> str:
    parts = ['<div class="programs">']
    for item in _EXAMPLE.finditer(items):
        language, path = item["language"], item["path"]
        source = Markup.escape((folder / path).read_text("utf-8"))
        link = f'<a href="/static/guide/partners/{path}" download>{item["name"]}</a>'
        parts += [
            f'<section class="program" data-language="{language}">',
            f'<p class="program-name">{_NAMES[language]} {link}</p>',
            f'<pre><code class="language-{language}">{source}</code></pre>',
            "</section>",
        ]
    return "\n".join([*parts, "</div>"])
