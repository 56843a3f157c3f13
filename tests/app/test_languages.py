"""The visitor's language, and a translation of every sentence in each language."""

import ast
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from appliance.core import errors as house_errors  # noqa: F401 - its errors are found as subclasses
from appliance.core.errors import ApiError, NameTaken, Rule, ValidationError
from appliance.core.i18n import isolate, load_languages
from appliance.staff.audit_log import AuditEntry
from web.portal.forms import Form
from web.portal.responses import refusal_text
from web.rendering import make_templates

ROOT = Path(__file__).parents[2]
CATALOGUES = ROOT / "appliance" / "catalogues"
LANGUAGES = load_languages()
FRENCH, ARABIC = LANGUAGES.get("fr"), LANGUAGES.get("ar")
WORDS_OF_THE_LOG = make_templates().from_string(
    """{% from "portal/people/log_words.html" import what_happened with context %}
    {{ what_happened(entry, {}) }}"""
)
BLANK = re.compile(r"\{\w+\}|%\(\w+\)s")


@pytest.mark.parametrize(
    ("header", "code"),
    [("", "fr"), ("en", "en"), ("ar-MA,ar;q=0.9,fr;q=0.8", "ar"), ("de, fr;q=0.1, en;q=0.2", "en"),
     ("EN-gb", "en"), ("de,es", "fr"), ("en;q=0", "fr"), ("en;q=nonsense, ar;q=0.1", "ar"),
     (",;=;q", "fr"), ("*", "fr")],
)  # fmt: skip
def test_a_page_is_in_the_browsers_preferred_language_or_else_in_french(header, code):
    assert LANGUAGES.accepted(header).code == code


def messages_of(code: str):
    with (CATALOGUES / f"{code}.po").open("rb") as file:
        return [message for message in read_po(file, locale=code) if message.id]


def forms(text) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def said_in(code: str) -> set[str]:
    """Return the msgids of a catalogue after checking the placeholders of every translation."""
    found = set()
    for message in messages_of(code):
        known = set(BLANK.findall(" ".join(forms(message.id))))
        for form in forms(message.string):
            assert set(BLANK.findall(form)) <= known, message.id
            assert not isinstance(message.id, str) or set(BLANK.findall(form)) == known, message.id
        if all(forms(message.string)):
            found.add(forms(message.id)[0])
    return found


@cache
def messages_in_the_code():
    words = {"_": None, "gettext": None, "ngettext": (1, 2), "field_invalid": (2,), "needed": (2,),
             "json_unreadable": None, "_refused": None, "Rule": None}  # fmt: skip
    kinds = [("**.py", "python"), ("**/templates/**.html", "jinja2"),
             ("**/templates/**.txt", "jinja2"),
             ("**/templates/**.webmanifest", "jinja2")]  # fmt: skip
    wanted = (found for package in ("appliance", "terminal_bridge", "web") for found in
        extract_from_dir(ROOT / package, kinds, keywords=words,
            directory_filter=lambda folder: Path(folder).name not in {"frontend", "static"},
    ))  # fmt: skip
    results = {"ok": None, "warn": (1, 2), "fail": (1, 2), "of": (2, 3), "at_least": (4, 5)}
    checks = extract_from_dir(ROOT / "appliance" / "checks", kinds[:1], keywords=results)
    findings = {part for _, _, message, _, _ in checks for part in forms(message)}
    said = {forms(message)[0] for _, _, message, _, _ in wanted}
    refusals = {refusal.text for refusal in all_refusals()}
    return said | findings | refusals


@pytest.mark.parametrize("code", ["fr", "ar"])
def test_every_message_is_translated_and_no_translation_is_obsolete(code):
    assert messages_in_the_code() == said_in(code)


def all_refusals(kind=ApiError):
    return {other for sub in kind.__subclasses__() for other in ({sub} | all_refusals(sub))}


def calls(*folders: str):
    """Yield every call in the code of these folders with the name of the called function."""
    for file in (file for folder in folders for file in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                yield getattr(node.func, "id", getattr(node.func, "attr", "")), node


def test_json_texts_contain_only_plain_spaces_and_apostrophes():
    sentence = "Too early: expected on %(when)s."
    assert "\N{NO-BREAK SPACE}" in FRENCH.gettext(sentence, when="x")
    said = FRENCH.plain(sentence, when="21\N{NO-BREAK SPACE}h")
    assert said.count("\N{NO-BREAK SPACE}") == 1, "what fills it stays as it is"


@cache
def entries_noted():
    """Return the audit log entries: the third argument, or that of `write(record_audit, …)`."""
    noting, found = ("record_audit", "add_audit_entry"), set()
    for name, call in calls("appliance", "web"):
        handed = [getattr(argument, "id", "") for argument in call.args]
        at = 2 if name in noting else handed.index(noting[0]) + 2 if noting[0] in handed else None
        if at is not None and isinstance(call.args[at], ast.Constant):
            found.add(call.args[at].value)
    return found


@pytest.mark.parametrize("code", ["fr", "en", "ar"])
def test_each_type_of_audit_entry_has_a_text(code):
    names = set(entries_noted())
    assert {"signed_in", "restored"} <= names
    for name in names:
        language, entry = LANGUAGES.get(code), AuditEntry(1, 0, "box", name, {})
        said = WORDS_OF_THE_LOG.render(entry=entry, _=language.gettext).strip()
        assert said
        assert "_" not in said, name


def test_the_audit_log_shows_roles_in_the_readers_language():
    entry = AuditEntry(1, 0, "box", "role_changed", {"before": "manager", "after": "owner"})
    said = WORDS_OF_THE_LOG.render(entry=entry, _=FRENCH.gettext)
    assert f"{FRENCH.gettext('Manager')} → {FRENCH.gettext('Owner')}" in said


def test_a_value_in_a_sentence_is_shown_as_it_was_typed():
    refusal = ValidationError.of("number", Rule("the number {number}.", {"number": "{x}"}))
    assert refusal_text(refusal, FRENCH) == "The number {x}."
    assert "Moha d'Ourika" in refusal_text(NameTaken(name="Moha d'Ourika"), FRENCH)
    with pytest.raises(ApiError) as raised:
        Form({"capacity_min": "x"}).integer("capacity_min", 1, 9)
    assert not re.search("[a-z]{3,}", refusal_text(raised.value, ARABIC))


def test_a_name_cannot_change_the_direction_of_the_sentence_around_it():
    assert isolate("Sal\u202ema\u2069") == "\u2068Salma\u2069"
    assert isolate(None) is None


class Reader(HTMLParser):
    """Return the visible texts and attributes of a template."""

    def __init__(self, source):
        super().__init__()
        self.silent, self.found = 0, []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if self.silent or tag in {"script", "style"} or given.get("class") == "trap":
            self.silent += tag not in {"area", "br", "hr", "img", "input", "link", "meta", "wbr"}
        shown = ("title", "alt", "placeholder", "label", "aria-label", "aria-description")
        self.found += [given.get(name) or "" for name in shown]

    def handle_endtag(self, _tag):
        self.silent -= bool(self.silent)

    def handle_data(self, data):
        self.found += [] if self.silent else [data]


# Names and samples that are the same in every language.
NAMES = {"venuebox", "VIP", "URL", "JSON", "CSV", "QR", "SVC", "XXXX", "HH", "MM", "ID", "SHA",
         "HTTP", "HTTPS", "TLS", "IP", "TCP", "PEM", "API", "MAD", "P", "W", "M", "T", "JPEG",
         "PNG", "SVG", "v", "ms", "kB", "MB", "GB", "Français", "English", "العربية",
         "WhatsApp"}  # fmt: skip
SAMPLE = re.compile(r"\S*(?:://|@|\.example|;)\S*|[\w-]+=\S*|-----[A-Z ]+-----|\bX-[A-Za-z-]+")
CODE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
ATTRIBUTES = re.compile(r"\{%-? macro [^%]*%\}([^<]*?)\{%-? endmacro -?%\}", re.DOTALL)


def bare_words(source):
    source = CODE.sub("", ATTRIBUTES.sub(r"<i \1></i>", source))
    texts = " ".join(Reader(source).found)
    return set(re.findall(r"[^\W\d_]+", SAMPLE.sub(" ", texts))) - NAMES


def test_no_template_contains_a_text_without_translation():
    assert bare_words('<p>Bonjour {{ _("x") }}</p><img alt="A pass">') == {"Bonjour", "A", "pass"}
    folders = [*(ROOT / "web/templates" / room for room in ("guest", "door", "portal")),
               ROOT / "appliance/email/templates"]  # fmt: skip
    pages = (file for folder in folders for file in folder.rglob("*.*"))
    for file in (page for page in pages if page.suffix != ".webmanifest"):
        assert bare_words(file.read_text("utf-8")) == set(), file
