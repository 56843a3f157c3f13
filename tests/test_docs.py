"""The links, names and examples in the documents.

`python docs/generate.py --check`, a part of `make check`, compares the generated documents.
"""

import argparse
import ast
import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import pytest

from appliance.clock import newest_zone_database
from appliance.core.settings import describe_settings
from appliance.door.verdict import COLOURS
from appliance.venue.venue_file import parse_venue_file
from docs.render import headings_of
from tests.readme import README, ROOT, code, documents, example, rows
from web.api.openapi import build_document, describe_servers
from web.main import make_parser
from web.portal.navigation import AREAS
from web.routes import PARTNER_ROUTE_TABLE

DOCUMENTS = documents()
PACKAGES = ("appliance", "terminal_bridge", "web")
NOT_PACKAGES = {"__pycache__", "node_modules", "static"}  # made by tools, ignored by git


def command_words(parser: argparse.ArgumentParser, name: str) -> Iterator[str]:
    yield name
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                yield from command_words(below, f"{name} {word}")


def test_the_readme_can_be_read_in_two_minutes():
    assert len(README.splitlines()) <= 100


@cache
def fragments(path: Path) -> set[str]:
    """Return the fragments that links to the document may have, on code hosts and on the box."""
    return {fragment for _, fragment, _ in headings_of(path.read_text("utf-8"))}


@pytest.mark.parametrize("path", DOCUMENTS)
def test_no_link_is_broken(path: str):
    broken = []
    for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", DOCUMENTS[path]):
        target, _, fragment = link.partition("#")
        found = (ROOT / path).parent / target if target else ROOT / path
        if not found.exists() or (fragment and fragment not in fragments(found)):
            broken.append(link)

    assert broken == []


CITATION = re.compile(r"(?<![\w.*:/-])(?:\.{0,2}/)*(?:[\w.-]+/)*[\w-]+\.md\b")


def written_files() -> Iterator[str]:
    """Return the files of this tree that people write, without generated ones."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            name for name in folders
            if name not in NOT_PACKAGES | {"build", "dist"} and (name[0] != "." or name == ".ci")
        ]  # fmt: skip
        for name in names:
            yield (Path(folder) / name).relative_to(ROOT).as_posix()


def test_every_cited_document_is_in_the_repository():
    """A document is cited by its path, the end of its path, or a unique name."""
    paths = list(written_files())
    ends = Counter(
        "/".join(PurePath(name).parts[start:])
        for name in paths
        if name.endswith(".md")
        for start in range(len(PurePath(name).parts))
    )
    missing = []
    for name in paths:
        if PurePath(name).suffix in {".png", ".svg", ".xz", ".pem"}:
            continue
        for cited in set(CITATION.findall((ROOT / name).read_text("utf-8"))):
            places = ((ROOT / name).parent / cited, ROOT / cited)
            end = re.sub(r"^(?:\.{1,2}/)+", "", cited)
            if ends[end] != 1 and not any(place.is_file() for place in places):
                missing.append(f"{name}: {cited}")

    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_command_in_an_example_can_be_parsed(path: str):
    for shown in re.findall(r"^ {4,}(?:sudo )?venuebox (.+)$", DOCUMENTS[path], re.MULTILINE):
        words = re.findall(r'"[^"]*"|\S+', shown)
        make_parser().parse_args([word.strip('"') for word in words])


def test_every_command_named_in_a_sentence_exists():
    words = set(command_words(make_parser(), "venuebox"))
    text = "\n".join(DOCUMENTS.values())
    named = re.findall(r"`(venuebox(?: [a-z][a-z-]+)*)", text)

    assert {name for name in named if not any(name.startswith(known) for known in words)} == set()
    assert {name for name in named if name not in words and _leaves(name, words)} == set()


def _leaves(name: str, words: set[str]) -> bool:
    """Return whether `name` is a command group without one of its commands."""
    parent = name.rpartition(" ")[0]
    return parent in words and any(known.startswith(f"{parent} ") for known in words)


def test_every_make_target_named_in_a_document_exists():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    named = {
        target
        for text in DOCUMENTS.values()
        for target in re.findall(r"(?:`|^ {4,})make ([a-z][\w-]*)", text, re.MULTILINE)
    }

    assert named - targets == set()


def test_every_setting_named_in_a_document_exists():
    names, variables = ({row[column] for row in describe_settings()} for column in (0, 1))
    sections = "|".join({name.split(".")[0] for name in names})
    text = "\n".join(DOCUMENTS.values())
    others = {"VENUEBOX_DATA", "VENUEBOX_RUNTIME"}  # variables that are not settings

    assert set(re.findall(rf"`((?:{sections})\.[a-z]\w+)[` ]", text)) - names == set()
    assert set(re.findall(r"VENUEBOX_[A-Z]\w+", text)) - variables - others == set()


def test_every_file_named_in_a_document_exists():
    tops = "appliance|terminal_bridge|web|packaging|requirements|tests|docs|bench"
    named = {
        path
        for document, text in DOCUMENTS.items()
        if document != "CHANGELOG.md"  # the changelog names files of earlier versions
        for path in re.findall(rf"`((?:{tops})/[\w./-]*\w/?)(?:::[\w:]+)?`", text)
        if PurePath(path).parts[:2] != ("web", "static")  # made by make
    }

    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_the_table_of_packages_lists_exactly_the_existing_ones():
    table = rows(DOCUMENTS["docs/contributing/architecture.md"], "package")
    packages = {
        f"{package}/{below.name}/"
        for package in PACKAGES
        for below in (ROOT / package).iterdir()
        if below.is_dir() and below.name not in NOT_PACKAGES
    }

    assert {code(row[0]) for row in table} == packages | {
        f"{name}/" for name in (*PACKAGES, "packaging", "requirements")
    }


def test_every_page_of_the_portal_is_in_its_table_with_its_role():
    table = rows(DOCUMENTS["docs/guide/portal.md"], "page")

    assert [(code(row[0]), row[1]) for row in table] == [(area.name, area.role) for area in AREAS]


def test_every_verdict_is_listed_under_its_colour():
    table = rows(DOCUMENTS["docs/guide/door.md"], "colour")

    assert {name: row[0] for row in table for name in re.findall(r"`(\w+)`", row[2])} == COLOURS


def test_the_figures_in_the_readme_are_those_of_the_last_measurements():
    figures = [
        figure
        for row in rows(README, "")
        if row[0] in {"Reservations", "Durability", "Door"}
        for figure in re.findall(r"\d[\d,]*(?:,\d{3}|\.\d+)", row[1])
    ]

    assert len(figures) == 5
    assert [figure for figure in figures if figure not in DOCUMENTS["docs/promises.md"]] == []


def test_the_example_venue_file_is_valid():
    shown = example(DOCUMENTS["docs/install.md"], "toml")
    venue = parse_venue_file(shown, newest_zone_database())

    assert (venue.name, venue.tables[0].number, venue.slots[0].start) == (
        "Riad Atlas", "T1", "19:30"
    )  # fmt: skip


def test_the_signature_check_in_the_readme_accepts_only_the_valid_vectors():
    namespace: dict[str, Any] = {}
    exec(example(DOCUMENTS["docs/partners/webhooks.md"], "python"), namespace)  # noqa: S102 - ours
    is_genuine = namespace["is_genuine"]
    vectors = json.loads((ROOT / "tests/vectors/webhook_signature.json").read_text("utf-8"))

    for case in vectors["cases"]:
        header, body, t = case["header"], case["body"].encode(), case["t"]
        for secret in case["secrets"]:
            assert is_genuine(secret, header, body, t)
            assert is_genuine(secret, header, body, t + 300)
            assert is_genuine(secret, header, body, t - 300)
            assert not is_genuine(secret, header, body, t + 301)
            assert not is_genuine(secret, header, body, t - 301)
            assert not is_genuine(secret, header, body + b" ", t)
            assert not is_genuine(secret + "x", header, body, t)
            assert not is_genuine(secret, header.replace(f"t={t}", f"t={t + 1}"), body, t)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_example_can_be_parsed(path: str):
    parsers = {"json": json.loads, "python": ast.parse, "toml": tomllib.loads}
    fences = re.findall(r"^```(\w+)\n(.*?)^```", DOCUMENTS[path], re.MULTILINE | re.DOTALL)
    for language, text in fences:
        parsers.get(language, str)(text)


def test_no_call_is_deprecated_and_the_document_explains_how_deprecation_would_look():
    document = build_document(PARTNER_ROUTE_TABLE, describe_servers("", "live"))

    assert "`Deprecation` and `Sunset`" in document["info"]["description"]
    assert '"deprecated": true' not in json.dumps(document)
