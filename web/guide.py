"""The partners' guide as a page: its sections, and its example programs where they are named.

`make` puts docs/ beside the bundled scripts, so that whatever carries those carries the guide.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markupsafe import Markup

from web.markdown import heading_id, render_markdown

GUIDE = Path(__file__).parent / "static" / "guide"
_EXAMPLE = re.compile(r"\[(?P<label>[^\]]+)\]\((?P<path>examples/(?P<language>\w+)/[\w.]+)\)$")
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
    return make_guide((GUIDE / "partners.md").read_text("utf-8"), GUIDE)


def make_guide(text: str, folder: Path) -> Guide:
    """The guide that `text` is, its examples read from `folder`."""
    html = render_markdown(text, lambda items: _examples(items, folder))
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


def _examples(items: Sequence[str], folder: Path) -> str | None:
    """A list of nothing but example programs is shown as the programs."""
    found = [_EXAMPLE.match(item) for item in items]
    if not all(found):
        return None
    parts = ['<div class="programs">']
    for match in found:
        assert match is not None  # noqa: S101 - all of them matched
        language, path = match["language"], match["path"]
        source = Markup.escape((folder / path).read_text("utf-8"))
        link = f'<a href="/static/guide/{path}" download>{path.rpartition("/")[2]}</a>'
        parts += [
            f'<section class="program" data-language="{language}">',
            f'<p class="program-name">{_NAMES[language]} {link}</p>',
            f'<pre><code class="language-{language}">{source}</code></pre>',
            "</section>",
        ]
    return "\n".join([*parts, "</div>"])
