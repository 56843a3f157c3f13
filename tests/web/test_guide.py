"""The partners' guide: the page shows docs/partners/guide.md, which agrees with the code."""

import html
import json
import re

import pytest

from appliance import errors
from appliance.actions.announce import EVENT_TYPES
from appliance.errors import Refusal
from tests.readme import ROOT, functions_of
from web.api.openapi import samples
from web.api.openapi.events import sample_event
from web.docs import DOCS_ROUTES
from web.guide import heading_id, make_guide

DOCS = ROOT / "docs" / "partners"
TEXT = (DOCS / "guide.md").read_text("utf-8")
NOT_IN_A_PARTNERS_WAY = {"WRONG_STATE"}


def test_every_error_a_partner_can_meet_has_its_advice_under_its_own_status():
    table = re.findall(r"^\| (\d{3}) \| (.*?) \|", TEXT, re.MULTILINE)
    advised = {(int(status), code) for status, codes in table for code in re.findall(r"\w+", codes)}
    kinds, found = [Refusal], set()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.__module__ == errors.__name__ and kind is not Refusal:
            found.add((kind.status, kind.code))

    partners = {row for row in found if row[1] not in NOT_IN_A_PARTNERS_WAY}

    assert advised <= found
    assert {code for _, code in partners if code in README_CODES} <= {code for _, code in advised}


README_CODES = set(re.findall(r"`([A-Z_]+)` \|", (ROOT / "README.md").read_text("utf-8"))) - (
    NOT_IN_A_PARTNERS_WAY
)


def test_every_event_is_in_the_table_and_no_other():
    assert re.findall(r"^\| `((?:reservation|webhook)\.\w+)`", TEXT, re.MULTILINE) == list(
        EVENT_TYPES
    )


def test_the_bodies_that_it_shows_are_those_of_the_description():
    shown = [json.loads(text) for text in re.findall(r"```json\n(.*?)\n```", TEXT, re.DOTALL)]

    assert shown == [
        samples.booking(samples.Wish()),
        samples.CREATION,
        sample_event("reservation.created"),
    ]


def test_a_command_fits_on_a_desk_beside_its_button():
    commands = re.findall(r"```bash\n(.*?)\n```", TEXT, re.DOTALL)

    assert [line for text in commands for line in text.split("\n") if len(line) > 84] == []


def test_every_program_is_in_the_guide_and_every_link_leads_somewhere():
    linked = set(re.findall(r"\]\((examples/[^)]+)\)", TEXT))
    programs = {
        path.relative_to(DOCS).as_posix()
        for path in (DOCS / "examples").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert linked == programs


def test_the_page_has_every_program_in_full_and_every_section_in_its_contents():
    guide = make_guide(TEXT, DOCS)

    page = html.unescape(str(guide.body))
    for path in (DOCS / "examples").rglob("*.*"):
        if "__pycache__" not in path.parts:
            assert path.read_text("utf-8") in page
    titles = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert [title for _, title in guide.sections] == titles
    for title in titles:
        assert f'id="{heading_id(title)}"' in guide.body


def test_every_program_is_run_by_a_test():
    journeys = "".join(
        path.read_text("utf-8") for path in (ROOT / "tests/journeys").glob("test_partner_docs*.py")
    )

    for path in (DOCS / "examples").rglob("*.*"):
        if "__pycache__" not in path.parts:
            assert f'"{path.name}"' in journeys, path
    assert functions_of("tests/journeys/test_partner_docs.py")


async def test_the_guide_leads_to_the_reference_the_sandbox_and_the_description(running):
    async with running.client.get("/docs") as response:
        assert response.status == 200
        page = await response.text()

    for address in ("/test/docs/reference", "/docs/reference", "/test", "/openapi.json"):
        assert f'href="{address}"' in page
    assert {path for _, path, _ in DOCS_ROUTES} == {"/docs", "/docs/reference", "/openapi.json"}


async def test_a_program_can_be_downloaded_from_the_box(running):
    async with running.client.get("/static/guide/partners/examples/python/book.py") as response:
        assert response.status == 200
        assert await response.text() == (DOCS / "examples/python/book.py").read_text("utf-8")


@pytest.mark.proves("V1")
async def test_what_a_guide_says_is_text_and_never_markup():
    guide = make_guide("# T\n\na <script>b</script> `<i>`\n", DOCS)

    assert "<script>" not in guide.body
    assert "<i>" not in guide.body
