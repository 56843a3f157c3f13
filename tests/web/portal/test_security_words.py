"""The security log is read by people: no entry is shown by the name that the code has for it."""

import ast
from pathlib import Path

import pytest

import appliance
import web
from appliance.store.security_log import SecurityEntry
from web.portal.people.log import what_happened
from web.rendering import LANGUAGES

NOTING = {"note_security", "add_security_entry"}


def names_in(source):
    """What is noted: the third argument, or that of a `write(note_security, actor, …)`."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call):
            continue
        called = getattr(call.func, "id", getattr(call.func, "attr", ""))
        handed = [getattr(argument, "id", "") for argument in call.args]
        if called in NOTING:
            what = call.args[2]
        elif NOTING & set(handed):
            what = call.args[handed.index("note_security") + 2]
        else:
            continue
        if isinstance(what, ast.Constant):
            yield what.value


def everything_noted():
    roots = [Path(package.__file__).parent for package in (appliance, web)]
    return sorted(
        {
            name
            for root in roots
            for path in root.rglob("*.py")
            for name in names_in(path.read_text())
        }
    )


def test_the_search_finds_what_is_noted_in_either_way():
    assert list(names_in('note_security(tx, actor, "one")\nwrite(note_security, me, "two")')) == [
        "one",
        "two",
    ]
    assert {"signed_in", "restarted", "restored"} <= set(everything_noted())


@pytest.mark.proves("S23")
@pytest.mark.parametrize("code", ["fr", "en", "ar"])
async def test_each_entry_has_words(running, code):
    language = running.client.server.app[LANGUAGES].get(code)

    for name in everything_noted():
        said = what_happened(SecurityEntry(1, 0, "box", name, {}), {}, language)
        assert said
        assert "_" not in said, f"{name} is shown as {said}"
        assert said != name
