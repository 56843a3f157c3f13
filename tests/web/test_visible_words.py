"""No visible word of guest pages, letters, door and portal stands outside the catalogues."""

import re
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import pytest
from jinja2 import nodes

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "web" / "templates"
SCRIPTS = ROOT / "web" / "frontend" / "src"
LETTERS = ROOT / "appliance" / "mail" / "templates"
ROOMS = ("guest", "door", "portal")
SHOWN = {"title", "alt", "placeholder", "label", "aria-label", "aria-description",
         "aria-roledescription", "aria-valuetext"}  # fmt: skip
# Names and signs that are the same in every language.
NAMES = {"venuebox", "VIP", "URL", "JSON", "CSV", "QR", "SVC", "XXXX", "HH", "MM", "ID", "SHA",
         "HTTP", "HTTPS", "TLS", "IP", "TCP", "PEM", "API", "MAD", "P", "W", "M", "T", "JPEG",
         "PNG", "SVG", "v", "ms", "kB", "MB", "GB", "Français", "English", "العربية"}  # fmt: skip
VOID = {"area", "br", "hr", "img", "input", "link", "meta", "source", "wbr"}
WORD = re.compile(r"[^\W\d_]+")
EXPRESSION = re.compile(r"\{\{-?(.*?)-?\}\}", re.DOTALL)
STATEMENT = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
# Macros that write attributes into a tag.
ATTRIBUTES = re.compile(r"\{%-? macro [^%]*%\}([^<]*?)\{%-? endmacro -?%\}", re.DOTALL)
# What is to be typed or sent is no word: addresses, queries, lists, headers, certificates.
SAMPLE = re.compile(r"\S*(?:://|@|\.example|;)\S*|[\w-]+=\S*|-----[A-Z ]+-----|\bX-[A-Za-z-]+")
PARSER = jinja2.Environment(extensions=["jinja2.ext.do"])  # noqa: S701 - parses, renders nothing


class Walker(HTMLParser):
    """Collects what a reader sees or hears of a template: texts and attributes.

    Not what is set up as a trap for programs: people never come across it.
    """

    def __init__(self):
        super().__init__()
        self.silent = 0
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if self.silent or tag in {"script", "style"} or given.get("class") == "trap":
            self.silent += tag not in VOID
        shown = SHOWN | ({"value"} if given.get("type") in {"submit", "button"} else set())
        self.found += [text for name, text in attrs if name in shown and text]

    def handle_endtag(self, _tag):
        self.silent -= bool(self.silent)

    def handle_data(self, data):
        if not self.silent:
            self.found.append(data)


def literals(expression):
    """Texts that an expression shows as they are: not arguments, not what `_()` looks up."""
    (output,) = PARSER.parse("{{" + expression + "}}").body
    pending, found = list(output.nodes), []
    while pending:
        node = pending.pop()
        if isinstance(node, nodes.Const) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, nodes.CondExpr):
            pending += [node.expr1, node.expr2] if node.expr2 else [node.expr1]
        elif isinstance(node, (nodes.Or, nodes.Add)):
            pending += [node.left, node.right]
        elif isinstance(node, nodes.Concat):
            pending += node.nodes
    return " ".join(found)


def bare_words(source):
    """The visible words of a template that no catalogue has."""
    source = STATEMENT.sub("", ATTRIBUTES.sub(r"<i \1></i>", source))
    walker = Walker()
    walker.feed(EXPRESSION.sub(lambda match: literals(match[1]), source))
    walker.close()
    return {word for text in walker.found for word in WORD.findall(SAMPLE.sub(" ", text))} - NAMES


def templates():
    folders = [TEMPLATES / room for room in ROOMS]
    files = [file for folder in folders for file in sorted(folder.rglob("*.html"))]
    return [*files, TEMPLATES / "base.html", *sorted(LETTERS.iterdir())]


@pytest.mark.parametrize("file", templates(), ids=lambda file: str(file.relative_to(ROOT)))
def test_a_template_says_nothing_of_its_own(file):
    assert bare_words(file.read_text("utf-8")) == set()


@pytest.mark.parametrize(
    "source",
    [
        "<p>Bonjour</p>",
        '<button aria-label="Close">{{ _("Close") }}</button>',
        '<img alt="A pass">',
        '<input placeholder="{{ "Search" }}">',
        '<p>{{ "Yes" if done else _("No") }}</p>',
        '<p>{{ name or "nobody" }}</p>',
        '<p>{{ count ~ " guests" }}</p>',
        '<input type="submit" value="Send">',
        "<p>{% if x %}مرحبا{% endif %}</p>",
    ],
)
def test_a_word_outside_of_the_catalogues_is_found(source):
    assert bare_words(source)


@pytest.mark.parametrize(
    "source",
    [
        '<p title="{{ _("Close") }}">{{ ngettext("%(count)s guest", "%(count)s guests", n) }}</p>',
        '<svg class="{{ "on" if x else "off" }}"><use href="#{{ "a" }}"/></svg>',
        '{% set title = _("Hello") %}<p>{{ title }} · {{ amount ~ " " ~ currency }}</p>',
        "<style>.a { color: red }</style><p>{{ icon('check') }} 19:30 → SVC-</p>",
    ],
)
def test_what_the_catalogues_say_is_left_alone(source):
    assert bare_words(source) == set()


# In a script: text that is put where a reader sees it.
PUT = re.compile(
    r"""(?:\.(?:textContent|innerText|title|placeholder|ariaLabel|alt)\s*=(?!=)
         |setAttribute\(\s*["'](?:aria-label|title|placeholder|alt)["']\s*,
         |\b(?:alert|confirm|prompt|createTextNode)\()\s*(["'`])(?P<text>(?:\\.|(?!\1).)*)\1""",
    re.VERBOSE,
)
PLACE = re.compile(r"\$\{[^}]*\}|\\u\{?[0-9a-fA-F]+\}?|\\.")


def spoken(script):
    """Words that a script shows without asking a catalogue."""
    texts = (PLACE.sub("", match["text"]) for match in PUT.finditer(script))
    return {word for text in texts for word in WORD.findall(text)} - NAMES


def scripts():
    rooms = [*(SCRIPTS / "door").glob("*.ts"), *(SCRIPTS / "portal").glob("*.ts")]
    tops = ("door.ts", "door-reader.ts", "door-service-worker.ts", "guest.ts", "house.ts",
            "welcome.ts")  # fmt: skip
    return sorted([*rooms, *(SCRIPTS / name for name in tops)])


@pytest.mark.parametrize("file", scripts(), ids=lambda file: str(file.relative_to(SCRIPTS)))
def test_a_script_shows_nothing_of_its_own(file):
    assert spoken(file.read_text("utf-8")) == set()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('box.textContent = "Not now";', {"Not", "now"}),
        ("box.setAttribute('aria-label', 'Close')", {"Close"}),
        ("alert(`Hello ${name}`)", {"Hello"}),
        ('box.textContent = words.say("not_now"); if (a.title == "x") b()', set()),
        ("clock.textContent = `${hours}:${minutes}`", set()),
    ],
)
def test_a_word_in_a_script_is_found_where_it_is_shown(script, words):
    assert spoken(script) == words
