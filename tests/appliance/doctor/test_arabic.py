"""No finding and no remedy is without its Arabic, and nothing Latin scrambles it."""

import ast
import re
from functools import cache
from string import Formatter

import pytest

from appliance.doctor.arabic import ARABIC, in_arabic
from appliance.doctor.check import well
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


def test_whatever_a_check_can_say_is_said_in_arabic_and_nothing_else_is_kept():
    assert {english for _, english in sentences()} == ARABIC.keys()


def test_the_arabic_tells_what_the_french_does_and_ends_as_it_does():
    for french, english in sentences():
        arabic = ARABIC[english]
        assert blanks(arabic) == blanks(french), english
        assert re.search("[\u0621-\u064a]", arabic), english
        assert arabic.endswith(".") == french.endswith("."), english


@pytest.mark.parametrize("english", ARABIC)
def test_what_could_be_scrambled_stands_between_backticks(english):
    plain = re.sub(r"`[^`]+`|\{\w+\}", " ", ARABIC[english])

    for word in re.findall(r"[!-~]*[A-Za-z][!-~]*", plain):
        assert re.fullmatch(r"[A-Za-z]+[.,:;)]*", word), word


def test_commands_and_what_fills_a_blank_are_isolated():
    said = in_arabic(
        "Give them back: chown -R {owner} {root}", {"owner": 0, "root": "/a\u202e/`b`"}
    )

    assert said.endswith(": \u2066chown -R \u20680\u2069 \u2068/a/`b`\u2069\u2069")


def test_a_sentence_without_its_arabic_stops_its_check():
    with pytest.raises(KeyError):
        well("sound", "Oui.", "Yes.")


@pytest.mark.parametrize(
    "source",
    [
        'well("x", "Oui.", f"Yes {x}.")',
        'said = "Oui.", f"Yes {x}."\nwell("x", *said)',
        'said = f()\nwell("x", *said)',
    ],
)
def test_a_sentence_that_cannot_be_read_in_the_source_is_found(source):
    with pytest.raises(AssertionError):
        said_in(ast.parse(source))


def test_both_sentences_of_a_choice_are_found():
    source = 'r = ("A", "B") if x else ("C", "D")\nwarn("x", "E", "F", *r)'

    assert said_in(ast.parse(source)) == {("A", "B"), ("C", "D"), ("E", "F")}
