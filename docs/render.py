"""Render docs/ for the box: `python docs/render.py FOLDER`, which make runs before it bundles.

For each document, e.g. `guide/portal.md`, its HTML without the title is written to
`guide/portal.html`. Links between documents are relative, so that they work in both environments.
`contents.json` contains the documents of each section with their titles and headings. Pictures and
example programs are copied.
"""
# ruff: noqa: INP001 - a build script, not a package

import json
import posixpath
import re
import shutil
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import escape

DOCS = Path(__file__).resolve().parent
FRONT = "index"
# Section titles by folder, in display order. Sections for other folders come last.
SECTIONS = {
    "": "Start here",
    "guide": "Guide",
    "partners": "Partners",
    "operations": "Operations",
    "reference": "Reference",
    "contributing": "Contributing",
    "decisions": "Decisions",
}
COPIED = re.compile(r"\.(png|svg|webp|jpe?g)$|(^|/)examples/(?!__)\w+/[^/.][^/]*$")
COPIES = "/static/documents/"
PROGRAM = rf"<li><a href=\"({COPIES}(?:\w+/)*examples/(\w+)/([\w.]+))\">[^<]+</a></li>\n"
PROGRAMS = re.compile(rf"<ul>\n(?:{PROGRAM})+</ul>")
LANGUAGES = {"curl": "curl", "python": "Python", "node": "Node", "php": "PHP"}
FRENCH = re.compile(r'<h2 id="en-bref">.*?(?=\n<h2|\Z)', re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#]+)")

Headings = list[tuple[str, str, str]]


def main() -> None:
    """Write everything to an empty folder."""
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    documents = Documents(DOCS)
    files = {f"{name}.html": documents.render(name).encode() for name in documents.names}
    files |= {name: (DOCS / name).read_bytes() for name in documents.copied}
    files["contents.json"] = json.dumps(documents.contents(), ensure_ascii=False).encode()
    for name, content in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(content)


class Documents:
    """The documents in a folder. A document's name is its path without `.md`.

    `names` begins with the front page. In a section, documents follow the order of their links on
    the front page. Documents without a link come last, sorted by name.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        self._texts = {
            path.relative_to(folder).with_suffix("").as_posix(): path.read_text("utf-8")
            for path in paths
            if path.suffix == ".md"
        }
        names = [path.relative_to(folder).as_posix() for path in paths]
        self.copied = [name for name in names if COPIED.search(name)]
        links = LINK.findall(self._texts.get(FRONT, ""))
        linked = [FRONT, *(posixpath.normpath(path).removesuffix(".md") for path in links)]
        position = {name: number for number, name in enumerate(linked)}
        place = {title: number for number, title in enumerate(SECTIONS.values())}

        def order(name: str) -> tuple[int, int]:
            return place.get(section_of(name), len(place)), position.get(name, len(position))

        self.names = sorted(self._texts, key=order)

    def contents(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return each section's documents by name, with their titles and second-level headings."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for name in self.names:
            text = self._texts[name]
            headings = [heading[1:] for heading in headings_of(text) if heading[0] == "h2"]
            document = {"title": title_of(text, name), "headings": headings}
            found.setdefault(section_of(name), {})[name] = document
        return found

    def render(self, name: str) -> str:
        """Render a document. HTML in its text is escaped, and wide tables can be scrolled."""
        markdown = make_markdown()
        tokens = markdown.parse(self._texts[name])
        name_headings(tokens)
        for token in tokens:
            token.children = self._with_links(token.children, name)
        html = markdown.renderer.render(tokens, markdown.options, {})
        html = re.sub(r"\A\s*<h1.*?</h1>\n", "", html)  # the page header shows the title
        html = PROGRAMS.sub(lambda found: self._programs(found[0]), html)
        html = FRENCH.sub(r'<div lang="fr">\g<0></div>', html)
        scrolls = '<div class="scrolls" tabindex="0" role="group" aria-label="Table">'
        html = html.replace("<table>", f"{scrolls}<table>").replace("</table>", "</table></div>")
        return html.replace("<pre>", '<pre tabindex="0">')

    def _with_links(self, tokens: list[Token] | None, name: str) -> list[Token] | None:
        """Convert links to those on the box. Replace links to missing documents with their text."""
        if tokens is None:
            return None
        kept, dropped = [], False
        for token in tokens:
            if token.type == "image":
                token.attrs["src"] = self._resolve(str(token.attrs["src"]), name) or ""
            if token.type == "link_open":
                address = self._resolve(str(token.attrs["href"]), name)
                dropped = address is None
                token.attrs["href"] = address or ""
            if not (dropped and token.type in {"link_open", "link_close"}):
                kept.append(token)
        return kept

    def _resolve(self, address: str, name: str) -> str | None:
        """Return the link on the page of the document `name`, or None if nothing is there."""
        parts = urlsplit(address)
        if parts.scheme or parts.netloc or parts.path.startswith("/") or not parts.path:
            return address
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)))
        if (self._folder / path).is_dir():
            inside = (each for each in self.names if each.startswith(f"{path}/"))
            path = FRONT if path == "." else next(inside, path)
        found = path.removesuffix(".md")
        if found in self._texts:
            # The front page is /docs, and the others are /docs/{name}.
            up = "" if name == FRONT else "../" * (name.count("/") + 1)
            fragment = f"#{parts.fragment}" if parts.fragment else ""
            return up + ("docs" if found == FRONT else f"docs/{found}") + fragment
        return COPIES + path if path in self.copied else None

    def _programs(self, items: str) -> str:
        """Return HTML with the source code of the example programs that `items` links to."""
        parts = ['<div class="programs">']
        for address, language, name in re.findall(PROGRAM, items):
            source = (self._folder / address.removeprefix(COPIES)).read_text("utf-8")
            link = f'<a href="{address}" download>{name}</a>'
            parts += [
                f'<section class="program" data-language="{language}">',
                f'<p class="program-name">{LANGUAGES.get(language, language)} {link}</p>',
                f'<pre><code class="language-{language}">{escape(source)}</code></pre>',
                "</section>",
            ]
        return "\n".join([*parts, "</div>"])


def section_of(name: str) -> str:
    """Return the title of the document's section."""
    folder = name.rpartition("/")[0].partition("/")[0]
    return SECTIONS.get(folder, folder.capitalize())


def title_of(text: str, name: str) -> str:
    """Return the title of a Markdown text, or the last part of its name."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].replace("`", "") if found else name.rpartition("/")[2]


def make_markdown() -> MarkdownIt:
    """Return the parser, which escapes HTML."""
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def headings_of(text: str) -> Headings:
    """Return the tag, fragment and title of each heading in a Markdown text."""
    return name_headings(make_markdown().parse(text))


def name_headings(tokens: list[Token]) -> Headings:
    """Give each heading the id that GitHub would give it. Return each tag, id and title."""
    seen: Counter[str] = Counter()
    found = []
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        title = "".join(child.content for child in inline.children or ())
        fragment = re.sub(r"[^\w -]", "", title.strip().lower()).replace(" ", "-")
        name = f"{fragment}-{seen[fragment]}" if seen[fragment] else fragment
        seen[fragment] += 1
        token.attrs["id"] = name
        found.append((token.tag, name, title))
    return found


if __name__ == "__main__":
    main()
