"""The README against the code: what it names exists, and what exists it names."""

import argparse
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from appliance import errors
from appliance.actions.announce import EVENT_TYPES
from appliance.clock import newest_zone_database
from appliance.errors import Refusal
from appliance.model.api_key import SCOPES
from appliance.model.venue_file import parse_venue_file
from appliance.model.verdict import COLOURS
from appliance.settings import describe_settings
from terminal_bridge.routes import TERMINAL_ROUTES
from tests.readme import README, ROOT, code, example, functions_of, references, rows, section
from web.api.openapi.document import build_document, describe_servers
from web.main import make_parser
from web.portal.navigation import AREAS
from web.principals import PRINCIPALS
from web.routes import PARTNER_ROUTE_TABLE

PACKAGES = ("appliance", "terminal_bridge", "web")
NOT_ROOMS = {"__pycache__", "node_modules", "static"}  # made by tools, ignored by git
SILENT, CONTRACT = "Where the contract is silent", "The contract, row by row"


def subclasses(kind: type[Refusal]) -> Iterator[type[Refusal]]:
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


def commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, set[str]]]:
    """Each command with its arguments, and its options."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not groups:
        arguments = [a.metavar for a in parser._actions if not a.option_strings]
        options = {text for action in parser._actions for text in action.option_strings}
        yield " ".join([name, *arguments]), options - {"-h", "--help"}
    for group in groups:
        for word, below in group.choices.items():
            yield from commands(below, f"{name} {word}")


def test_every_error_code_is_in_its_table_with_its_status_and_no_other():
    documented = [(int(status), code(name)) for status, name, _ in rows(section("Errors"), "HTTP")]
    ours = {k for k in subclasses(Refusal) if k.__module__ == errors.__name__}

    assert len(documented) == len(set(documented))
    assert set(documented) == {(kind.status, kind.code) for kind in ours}


def test_every_partner_route_is_in_its_table_with_its_scope_and_no_other():
    table = rows(section("The partner interface in brief"), "method")

    assert [(method, code(path), code(scope)) for method, path, scope, _ in table] == [
        (route.method, route.path, route.scope) for route in PARTNER_ROUTE_TABLE
    ]


def test_the_scopes_in_the_readme_are_those_there_are():
    named = set(re.findall(r"`([a-z]+:[a-z]+)`", README))

    assert named == set(SCOPES)


async def test_every_address_that_the_box_answers_is_in_the_readme_and_no_other(running):
    partner = [(row[0], code(row[1])) for row in
               rows(section("The partner interface in brief"), "method")]  # fmt: skip
    both, once = re.split(
        r"^These exist once", section("The door and the guest"), flags=re.MULTILINE
    )
    in_both = partner + [(row[0], code(row[1])) for row in rows(both, "method")]
    documented = {(method, prefix + path) for method, path in in_both for prefix in ("", "/test")}
    documented |= {(row[0], code(row[1])) for row in rows(once, "method")}

    rooms = {
        path for (_, path), who in running.app[PRINCIPALS].items() if who.kind == "staff"
    }  # of the portal: they have a table of their own
    answered = {
        (route.method, route.resource.canonical)
        for route in running.app.router.routes()
        if route.resource is not None
        and route.method != "HEAD"
        and route.resource.canonical not in rooms
    }

    assert answered == documented


def test_every_room_of_the_portal_is_in_its_table_with_its_role():
    documented = [(code(row[0]), row[1]) for row in rows(section("The portal"), "room")]

    assert documented == [(area.name, area.role) for area in AREAS]


def test_every_terminal_route_is_in_the_readme():
    table = {(row[0], code(row[1])) for row in rows(section("The door and the guest"), "method")}

    assert {(method, path) for method, path, _ in TERMINAL_ROUTES} <= table


def test_every_verdict_is_in_the_readme_under_its_colour():
    documented = {
        result: colour
        for colour, results in rows(section("The door and the guest"), "colour")
        for result in re.findall(r"`(\w+)`", results)
    }

    assert documented == dict(COLOURS)


def test_every_event_type_is_in_its_table_and_no_other():
    assert [code(row[0]) for row in rows(section("Webhooks"), "event")] == list(EVENT_TYPES)
    assert set(re.findall(r"`((?:reservation|webhook)\.[a-z_]+)`", README)) == set(EVENT_TYPES)


def test_every_setting_is_in_its_table_as_the_code_describes_it():
    documented = [
        (code(name), code(variable), json.loads(code(default)), meaning)
        for name, variable, default, meaning in rows(section("Settings"), "setting")
    ]

    assert documented == [
        (name, variable, list(default) if isinstance(default, tuple) else default, meaning)
        for name, variable, default, meaning in describe_settings()
    ]


def test_no_setting_is_named_anywhere_that_does_not_exist():
    names = {row[0] for row in describe_settings()}
    sections = "|".join({name.split(".")[0] for name in names})
    named = set(re.findall(rf"`((?:{sections})\.\w+)`", README))
    variables = set(re.findall(r"VENUEBOX_\w+", README))

    assert named == names
    others = {"VENUEBOX_DATA", "VENUEBOX_RUNTIME"}  # where its data is, where it unpacks itself
    assert variables == {row[1] for row in describe_settings()} | others


def test_every_command_is_in_its_table_with_its_options_and_no_other():
    documented = [
        (code(command), set(re.findall(r"--[a-z-]+", options)))
        for command, options, _ in rows(section("Command line"), "command")
    ]

    assert documented == list(commands(make_parser(), "venuebox"))


def test_every_command_that_an_example_shows_is_understood():
    examples = re.findall(r"^ +venuebox (.+)$", README, re.MULTILINE)

    assert len(examples) >= 5
    for shown in examples:
        words = re.findall(r'"[^"]*"|\S+', shown)
        make_parser().parse_args([word.strip('"') for word in words])


def test_every_make_target_is_in_its_table_and_no_other():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    [phony] = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    documented = {code(row[0]) for row in rows(section("Development"), "target")}

    assert documented == {f"make {target}" for target in phony.split()}
    assert set(re.findall(r"`make (\w+)`", README)) == set(phony.split())


def test_every_room_is_in_the_table_of_rooms_and_no_other():
    documented = {code(row[0]) for row in rows(section("How it is built"), "room")
                  if not row[0].startswith("`tests/")}  # fmt: skip
    tops = {f"{name}/" for name in (*PACKAGES, "packaging", "requirements")}
    rooms = {
        f"{package}/{room.name}/"
        for package in PACKAGES
        for room in (ROOT / package).iterdir()
        if room.is_dir() and room.name not in NOT_ROOMS
    }

    assert documented == tops | rooms


def test_every_file_and_folder_that_the_readme_names_is_there():
    tops = "appliance|terminal_bridge|web|packaging|requirements|tests"
    named = set(re.findall(rf"`((?:{tops})/[\w./-]*)(?:::[\w:]+)?`", README))
    linked = set(re.findall(r"\]\((?!https?:)([^)#]+)\)", README))

    missing = [path for path in named | linked if not (ROOT / path).exists()]

    assert len(named) > 50
    assert missing == []


def test_the_figures_that_the_readme_begins_with_are_those_of_the_last_soak():
    (claim,) = (line for line in README.split("\n") if "(docs/promises.md):" in line)
    promises = (ROOT / "docs" / "promises.md").read_text("utf-8")

    figures = re.findall(r"[\d,]*\d,\d{3}", claim)

    assert len(figures) == 3
    assert [figure for figure in figures if f"| {figure} " not in promises] == []


def test_every_test_that_the_readme_names_is_there():
    missing = [
        f"{path}::{name}"
        for path, name in references(README)
        if not (ROOT / path).exists() or name not in functions_of(path)
    ]

    assert len(references(README)) > 150
    assert missing == []


@pytest.mark.parametrize(("title", "column"), [(SILENT, "question"), (CONTRACT, "row")])
def test_every_row_names_a_test(title: str, column: str):
    without = [row[0] for row in rows(section(title), column) if not references(row[2])]

    assert without == []


def test_every_point_of_our_decisions_has_its_row():
    """As many as the decisions have; States is prose there, and Time three sentences."""
    counts = {
        title: len(rows(section(title), "question"))
        for title in ("Partner interface", "States", "Webhooks in detail", "Time")
    }

    assert counts == {"Partner interface": 39, "States": 9, "Webhooks in detail": 14, "Time": 5}


def test_every_endpoint_and_every_error_of_the_contract_has_its_row():
    endpoints = [row[0].replace("`", "") for row in rows(section("Section 4: endpoints"), "row")]
    listed = re.findall(r"(\d{3}) `([A-Z_]+)`", section("Section 7: errors"))

    assert endpoints[:9] == [f"{route.method} {route.path}" for route in PARTNER_ROUTE_TABLE]
    assert endpoints[9:] == ["Scopes", *(f"Rule {number}" for number in range(1, 7))]
    assert {(int(status), name) for status, name in listed} == set(SECTION_7)
    assert len(rows(section("Section 8: limits"), "row")) == 12


SECTION_7 = [
    (400, "INVALID_JSON"), (400, "INVALID_DATE"), (400, "INVALID_SLOT"), (400, "INVALID_TABLE"),
    (400, "INVALID_GUESTS"), (400, "GUESTS_OUT_OF_RANGE"), (400, "CUSTOMER_NAME_REQUIRED"),
    (400, "CUSTOMER_CONTACT_REQUIRED"), (400, "INVALID_EMAIL"), (400, "IDEMPOTENCY_KEY_REQUIRED"),
    (401, "UNAUTHORIZED"), (401, "KEY_REVOKED"), (403, "SCOPE_MISSING"), (404, "TABLE_NOT_FOUND"),
    (404, "NOT_FOUND"), (409, "TABLE_TAKEN"), (409, "VENUE_INACTIVE"), (409, "TOO_MANY_ENDPOINTS"),
    (429, "RATE_LIMITED"), (409, "TABLE_NOT_BOOKABLE"),
]  # fmt: skip


def test_the_venue_file_of_the_readme_is_a_good_one():
    venue = parse_venue_file(example("toml"), newest_zone_database())

    assert (venue.name, venue.tables[0].number, venue.slots[0].start) == (
        "Riad Atlas", "T1", "19:30"
    )  # fmt: skip


@pytest.mark.proves("decision: What is the signing key?", "interface 8: Signature age tolerance")
def test_the_example_of_the_readme_accepts_the_vectors_and_nothing_else():
    namespace: dict[str, Any] = {}
    exec(example("python"), namespace)  # noqa: S102 - the README is ours
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


@pytest.mark.proves("decision: How is something taken away?")
def test_nothing_is_deprecated_and_the_guide_says_how_it_would_be():
    document = build_document(PARTNER_ROUTE_TABLE, describe_servers("", "live"))
    guide = document["info"]["description"]

    assert "changes only add" in guide
    assert "six months ahead with `Deprecation` and `Sunset` headers" in guide
    assert '"deprecated": true' not in json.dumps(document)
    assert "six months' notice with `Deprecation` and `Sunset` headers" in README


@pytest.mark.parametrize("word", ["/home/", "/tmp/", "TODO", "FIXME"])
def test_the_readme_names_no_place_of_a_machine_and_leaves_nothing_open(word: str):
    assert word not in README
