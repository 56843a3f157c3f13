"""The project's documentation (`/docs`), the API explorer, and the OpenAPI document.

`make` copies docs/ to `static/documents`.
"""

import asyncio
import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from itertools import groupby, pairwise, product
from pathlib import Path
from urllib.parse import unquote, urlsplit

from aiohttp import web
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from appliance.database.connection import Reader
from appliance.environment import path_prefix
from appliance.http.request import ENVIRONMENT, answer, claims_https
from appliance.venue.model import (
    find_closure,
    find_tonight,
    get_venue,
    list_closings,
    list_slots,
    list_tables,
    offered_slots,
)
from web.api.openapi import ExampleBooking, build_document, describe_servers
from web.portal.cookies import BOX
from web.rendering import public_page
from web.routes import PARTNER_ROUTE_TABLE

FRONT = "index"
# Section titles by folder, in display order. Sections for other folders come last.
_SECTIONS = {
    "": "Start here",
    "guide": "Guide",
    "partners": "Partners",
    "operations": "Operations",
    "reference": "Reference",
    "contributing": "Contributing",
    "decisions": "Decisions",
}
_PROGRAM = r"<li><a href=\"(/static/documents/(?:\w+/)*examples/(\w+)/([\w.]+))\">[^<]+</a></li>\n"
_PROGRAMS = re.compile(rf"<ul>\n(?:{_PROGRAM})+</ul>")
_LANGUAGES = {"curl": "curl", "python": "Python", "node": "Node", "php": "PHP"}
_FRENCH = re.compile(r'<h2 id="en-bref">.*?(?=\n<h2|\Z)', re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s#]+)")


@dataclass(frozen=True, slots=True)
class Document:
    """A file in docs/. `name` is its path without the extension, e.g. `partners/guide`."""

    name: str
    title: str

    @property
    def section(self) -> str:
        """Return the title of the document's section."""
        folder = self.name.rpartition("/")[0].partition("/")[0]
        return _SECTIONS.get(folder, folder.capitalize())

    def address(self, prefix: str) -> str:
        """Return the document's path on the box. `prefix` is the environment's path prefix."""
        return f"{prefix}/docs" if self.name == FRONT else f"{prefix}/docs/{self.name}"


@dataclass(frozen=True, slots=True)
class Page:
    """A document as HTML, without its title.

    `contents` contains the URL fragment and the title of each section.
    """

    document: Document
    body: Markup
    contents: Sequence[tuple[str, str]]


class Documents:
    """The Markdown files in a folder. The constructor reads all files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts = {
            path.relative_to(folder).with_suffix("").as_posix(): path.read_text("utf-8")
            for path in sorted(folder.rglob("*.md"))
        }
        links = _LINK.findall(self._texts.get(FRONT, ""))
        names = [FRONT, *(posixpath.normpath(path).removesuffix(".md") for path in links)]
        position = {name: number for number, name in enumerate(names)}
        place = {title: number for number, title in enumerate(_SECTIONS.values())}

        def order(document: Document) -> tuple[int, int]:
            name, section = document.name, document.section
            return place.get(section, len(place)), position.get(name, len(position))

        documents = [Document(name, _title(text, name)) for name, text in self._texts.items()]
        self._documents = {each.name: each for each in sorted(documents, key=order)}
        # Rendered pages by (name, prefix). Only existing documents are stored, so the cache stays
        # small.
        self._pages: dict[tuple[str, str], Page] = {}

    def sections(self) -> Sequence[tuple[str, Sequence[Document]]]:
        """Return each section's title and documents. The front page comes first.

        In a section, documents follow the order of their links on the front page. Documents without
        a link come last, sorted by name.
        """
        grouped = groupby(self._documents.values(), key=lambda each: each.section)
        return [(title, list(documents)) for title, documents in grouped]

    def page(self, name: str, prefix: str) -> Page | None:
        """Return a document as a page whose links use `prefix`, or None if it is unknown."""
        document = self._documents.get(name)
        if document is None:
            return None
        if (name, prefix) not in self._pages:
            self._pages[name, prefix] = self._render(document, prefix)
        return self._pages[name, prefix]

    def _render(self, document: Document, prefix: str) -> Page:
        """Render a document. HTML in its text is escaped, and wide tables can be scrolled."""
        markdown = _markdown()
        tokens = markdown.parse(self._texts[document.name])
        contents = [(name, title) for tag, name, title in _name_headings(tokens) if tag == "h2"]
        for token in tokens:
            token.children = self._with_links(token.children, document, prefix)
        html = markdown.renderer.render(tokens, markdown.options, {})
        html = re.sub(r"\A\s*<h1.*?</h1>\n", "", html)  # the page header shows the title
        html = _PROGRAMS.sub(lambda found: self._programs(found[0]), html)
        html = _FRENCH.sub(r'<div lang="fr">\g<0></div>', html)
        scrolls = '<div class="scrolls" tabindex="0" role="group" aria-label="Table">'
        html = html.replace("<table>", f"{scrolls}<table>").replace("</table>", "</table></div>")
        html = html.replace("<pre>", '<pre tabindex="0">')
        return Page(document, Markup(html), contents)  # noqa: S704 - the text is escaped

    def _with_links(
        self, tokens: list[Token] | None, document: Document, prefix: str
    ) -> list[Token] | None:
        """Convert links to paths on the box. Replace links to missing documents with their text."""
        if tokens is None:
            return None
        kept, dropped = [], False
        for token in tokens:
            if token.type == "image":
                token.attrs["src"] = self._resolve(str(token.attrs["src"]), document, prefix) or ""
            if token.type == "link_open":
                address = self._resolve(str(token.attrs["href"]), document, prefix)
                dropped = address is None
                token.attrs["href"] = address or ""
            if not (dropped and token.type in {"link_open", "link_close"}):
                kept.append(token)
        return kept

    def _resolve(self, address: str, document: Document, prefix: str) -> str | None:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc or parts.path.startswith("/") or not parts.path:
            return address
        folder = posixpath.dirname(document.name)
        path = posixpath.normpath(posixpath.join(folder, unquote(parts.path)))
        fragment = f"#{parts.fragment}" if parts.fragment else ""
        if (self._folder / path).is_dir():
            inside = (name for name in self._documents if name.startswith(f"{path}/"))
            path = FRONT if path == "." else next(inside, path)
        found = self._documents.get(path.removesuffix(".md"))
        if found:
            return found.address(prefix) + fragment
        is_ours = not path.startswith("..") and (self._folder / path).is_file()
        return f"/static/documents/{path}" if is_ours else None

    def _programs(self, items: str) -> str:
        """Return HTML with the source code of the example programs that `items` links to."""
        parts = ['<div class="programs">']
        for address, language, name in re.findall(_PROGRAM, items):
            path = self._folder / address.removeprefix("/static/documents/")
            source = Markup.escape(path.read_text("utf-8"))
            link = f'<a href="{address}" download>{name}</a>'
            parts += [
                f'<section class="program" data-language="{language}">',
                f'<p class="program-name">{_LANGUAGES.get(language, language)} {link}</p>',
                f'<pre><code class="language-{language}">{source}</code></pre>',
                "</section>",
            ]
        return "\n".join([*parts, "</div>"])


@cache
def all_documents() -> Documents:
    """Return the documentation that this box serves."""
    return Documents(Path(__file__).parent / "static" / "documents")


def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def headings(text: str) -> list[tuple[str, str]]:
    """Return the fragment and title of each heading in a Markdown text."""
    return [(fragment, title) for _tag, fragment, title in _name_headings(_markdown().parse(text))]


def _name_headings(tokens: list[Token]) -> list[tuple[str, str, str]]:
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


def _title(text: str, name: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].replace("`", "") if found else name.rpartition("/")[2]


_DAYS_AHEAD, _DAYS_TRIED, _PARTY = 7, 14, 2
# Patterns for the places in the guides' HTML that contain a value from ExampleBooking.
_TEXT, _DAY, _SLOT = Markup("&quot;{}&quot;"), Markup("DAY={}"), Markup("SLOT={}")
_EXAMPLE_PLACES = (_TEXT, _DAY, _SLOT, Markup("&quot;guests&quot;: {}"))


async def show_document(request: web.Request) -> web.Response:
    """`GET /openapi.json`: return the OpenAPI 3.1 document.

    Its list of servers begins with this environment's server.
    """
    environment = request[ENVIRONMENT]
    servers = describe_servers(_base(request), environment.name)
    example = environment.database.peek(_find_example)
    headers = {"Cache-Control": "no-cache"}
    return answer(build_document(PARTNER_ROUTE_TABLE, servers, example), headers=headers)


async def show_page(request: web.Request) -> web.Response:
    """`GET /docs/{name}`: show a document, e.g. `/docs/partners/guide`, or the front page.

    Documents are read and rendered in a thread at the first request.
    """
    prefix = path_prefix(request[ENVIRONMENT].name)
    documents = await asyncio.to_thread(all_documents)
    name = request.match_info.get("name", FRONT)
    page = await asyncio.to_thread(documents.page, name, prefix)
    if page is None:
        raise web.HTTPNotFound
    sections = [
        (title, [(each.address(prefix), each.title, each == page.document) for each in listed])
        for title, listed in documents.sections()
    ]
    if name.startswith("partners/"):
        # The calls in the guide go to the test environment.
        example = request.app[BOX].test.database.peek(_find_example)
        page = replace(page, body=_with_own_values(page.body, _base(request), example))
    values = {**page_addresses(request), "page": page, "sections": sections}
    return public_page(request, "docs/page.html", values)


async def show_reference(request: web.Request) -> web.Response:
    """`GET /docs/reference`: show the API explorer. It loads nothing from outside the box."""
    # The policy also allows data: images, because Swagger UI's stylesheet embeds its icons.
    values = page_addresses(request)
    return public_page(request, "docs/reference.html", values, img_src="'self' data:")


def page_addresses(request: web.Request) -> dict[str, object]:
    """Return the URLs on the documentation pages. They contain this request's host."""
    name, base = request[ENVIRONMENT].name, _base(request)
    prefix, test = path_prefix(name), path_prefix("test")
    return {
        "document_url": f"{prefix}/openapi.json",
        "documents_url": f"{prefix}/docs",
        "guide_url": f"{prefix}/docs/partners/guide",
        "reference_url": f"{prefix}/docs/reference",
        "sandbox_url": test,
        "live_base": base,
        "test_base": base + test,
        "live_reference_url": "/docs/reference",
        "test_reference_url": f"{test}/docs/reference",
    }


def _base(request: web.Request) -> str:
    """Return the live environment's base URL.

    This is `server.app_url` if the request used its host, otherwise the request's origin. The API
    explorer calls this URL, and browsers let a page call only its own origin.
    """
    base = request[ENVIRONMENT].settings.server.app_url
    if base and urlsplit(base).netloc == request.host:
        return base
    scheme = "https" if claims_https(request) else request.scheme
    return f"{scheme}://{request.host}"


def _with_own_values(body: Markup, base: str, booking: ExampleBooking) -> Markup:
    """Return a guide with this box's URL, and an example booking that this box accepts."""
    body = body.replace("https://box.example", base)
    for name, place in product(("table_id", "date", "slot", "guests"), _EXAMPLE_PLACES):
        usual, own = getattr(ExampleBooking(), name), getattr(booking, name)
        body = body.replace(place.format(usual), place.format(own))
    return body


def _find_example(reader: Reader) -> ExampleBooking:
    """Return an example booking, about a week ahead, that this box would accept.

    The example stays the same all day, so a partner who sends it twice receives a replay. If no
    table or slot can be booked, all values except the date are placeholders.
    """
    venue, closings, slots = get_venue(reader), list_closings(reader), list_slots(reader)
    today = find_tonight(reader)
    table = next((table for table in list_tables(reader) if table.bookable), None)
    for ahead in range(_DAYS_AHEAD, _DAYS_AHEAD + _DAYS_TRIED):
        day = today + timedelta(days=ahead)
        slot = next(iter(offered_slots(slots, day)), None)
        if table and slot and find_closure(venue, closings, day.isoformat()) is None:
            guests = max(table.capacity_min, min(_PARTY, table.capacity_max))
            return ExampleBooking(table.id, day.isoformat(), slot.start, guests, f"TRY-{day}")
    return ExampleBooking(date=(today + timedelta(days=_DAYS_AHEAD)).isoformat())


DOCS_ROUTES = (
    ("GET", "/openapi.json", show_document),
    ("GET", "/docs", show_page),
    ("GET", "/docs/reference", show_reference),
    ("GET", "/docs/{name:.+}", show_page),
)
