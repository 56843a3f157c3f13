"""Enter in a field of a form presses the form's first submit button, so that is the main one."""

import re
from html.parser import HTMLParser
from pathlib import Path

TEMPLATES = Path(__file__).parents[2] / "web/templates"
FIELDS = {"text", "search", "tel", "url", "email", "password", "number", "date", "time",
          "datetime-local", "checkbox", "radio"}  # fmt: skip
BY_SCRIPT = {"switch"}  # ids of forms without a button, which a script listens to
PARTS = re.compile(r'\{% include "([^"]+)" %\}')


class Forms(HTMLParser):
    """The forms of a template: (id, has a field, the submit buttons' attributes)."""

    def __init__(self, source):
        super().__init__()
        self.found, self._open = [], False
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "form":
            self.found.append((attrs.get("id"), [], []))
            self._open = True
        if not self._open:
            return
        _, fields, buttons = self.found[-1]
        if tag == "input" and attrs.get("type", "text") in FIELDS:
            fields.append(attrs)
        if tag == "button" and attrs.get("type", "submit") == "submit":
            buttons.append(attrs)

    def handle_endtag(self, tag):
        if tag == "form":
            self._open = False


def source_of(path):
    """The template with what it includes, without Jinja's tags. All branches stand in it."""
    text = path.read_text("utf-8")
    text = PARTS.sub(lambda found: source_of(TEMPLATES / found[1]), text)
    text = re.sub(r"\{\{.*?\}\}", "x", re.sub(r"\{#.*?#\}", "", text, flags=re.DOTALL))
    return re.sub(r"\{%.*?%\}", " ", text, flags=re.DOTALL)


def wrong_forms(source):
    for name, fields, buttons in Forms(source).found:
        if not fields or (name in BY_SCRIPT and not buttons):
            continue
        classes = [(button.get("class") or "").split() for button in buttons]
        is_quiet = [{"quiet-button", "light"} & set(each) != set() for each in classes]
        is_main = buttons and "name" not in buttons[0] and (not is_quiet[0] or all(is_quiet))
        if not is_main:
            yield name or fields[0].get("name"), buttons


def test_the_first_button_of_every_form_is_its_main_one():
    other = '<form><button name="offer">Look</button><input name="q"><button>Send</button></form>'
    quiet = '<form><input><button class="quiet-button">No</button><button>Yes</button></form>'
    assert len(list(wrong_forms(other + quiet + "<form><input></form>"))) == 3

    pages = sorted(TEMPLATES.rglob("*.html"))
    forms = {page: Forms(source_of(page)).found for page in pages}
    assert sum(map(len, forms.values())) >= len(re.findall("<form", "".join(
        page.read_text("utf-8") for page in pages)))  # fmt: skip
    wrong = {page.name: list(wrong_forms(source_of(page))) for page in pages}
    assert {page: forms for page, forms in wrong.items() if forms} == {}
