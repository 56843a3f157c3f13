"""The catalogue: whatever a check or a condition says is there in every language."""

import ast
import re
from functools import cache
from string import Formatter

import pytest

from appliance.doctor import conditions
from appliance.doctor.arabic import ARABIC
from appliance.doctor.words import PLAIN, PLAIN_CONDITIONS
from tests.readme import ROOT

CHECKS = "appliance.doctor.check"
# Who makes sentences, and how many arguments stand before them; `judge` is warn or fail.
MAKERS = {"say": 0, "well": 1, "warn": 1, "fail": 1, "judge": 1}


@cache
def sentences():
    """French and English of everything that a check can say."""
    files = (*ROOT.glob("appliance/**/*.py"), *ROOT.glob("web/**/*.py"))
    trees = [ast.parse(text) for file in files if CHECKS in (text := file.read_text("utf-8"))]
    return {pair for tree in trees if names_of(tree) & MAKERS.keys() for pair in said_in(tree)}


def names_of(tree):
    """What the module imports from there."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in found if node.module == CHECKS for alias in node.names}


def said_in(tree):
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls = [call for call in calls if getattr(call.func, "id", "") in MAKERS]
    told = [a for call in calls for a in call.args[MAKERS[call.func.id]:]]  # fmt: skip
    spread = {arg.value.id for arg in told if isinstance(arg, ast.Starred)}
    words = [arg for arg in told if not isinstance(arg, ast.Starred)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and {getattr(t, "id", "") for t in node.targets} & spread:
            pairs = [part for part in ast.walk(node.value) if isinstance(part, ast.Tuple)]
            assert pairs, f"line {node.lineno}: a pair of sentences"
            words += [word for pair in pairs for word in pair.elts]
    for word in words:
        assert isinstance(word, ast.Constant), f"line {word.lineno}: blanks are filled later"
    texts = [word.value for word in words]
    return set(zip(texts[::2], texts[1::2], strict=True))


def blanks(sentence):
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def every_condition():
    """What the modules that note conditions, or say that they are over, call them."""
    rooms = ("appliance", "terminal_bridge", "web")
    files = [file for room in rooms for file in (ROOT / room).rglob("*.py")]
    texts = [file.read_text("utf-8") for file in files if "node_modules" not in file.parts]
    noting = [text for text in texts if re.search(r"\b(?:put|drop|_write)_condition\b", text)]
    named = re.compile(r'^[A-Z_]+ = "([a-z]+(?:_[a-z]+)*)"', re.MULTILINE)
    return {name for text in noting for name in named.findall(text)}


def test_whatever_a_check_can_say_is_said_in_arabic_with_the_same_blanks_and_nothing_else_is_kept():
    assert {english for _, english in sentences()} == ARABIC.keys()
    for french, english in sentences():
        assert blanks(ARABIC[english]) == blanks(french), english


def test_whatever_the_box_can_note_has_its_arabic_with_the_same_blanks():
    assert every_condition() == conditions.ARABIC.keys()
    assert conditions.FRENCH.keys() <= conditions.ARABIC.keys()
    for name, english in conditions.ENGLISH.items():
        said = (conditions.FRENCH[name], conditions.ARABIC[name])
        assert blanks(said[0]) == blanks(said[1]) == blanks(english)


@pytest.mark.parametrize("plain", [*PLAIN.values(), *PLAIN_CONDITIONS.values()])
def test_the_words_for_the_portal_have_the_same_blanks_in_every_language(plain):
    assert blanks(plain.fr) == blanks(plain.en) == blanks(plain.ar)


def test_the_words_for_the_portal_are_of_checks_that_exist_and_fill_no_other_blank():
    assert PLAIN.keys() <= {english for _, english in sentences()} | {"The box reports: {english}."}
    for english, plain in PLAIN.items():
        assert blanks(plain.en) <= blanks(english)
