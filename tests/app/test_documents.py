"""The documents on the box: every page of docs/ is served, and no link is broken."""

import html
import json
import re
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from appliance.outbox import EVENT_TYPES, EXTRA_TYPES
from docs.render import Documents
from tests.readme import ROOT
from web.api.openapi import build_document, example, sample_event
from web.routes import PARTNER_ROUTE_TABLE

DOCS = ROOT / "docs"
PROGRAMS = [
    path.relative_to(DOCS).as_posix()
    for path in sorted((DOCS / "partners/examples").rglob("*.*"))
    if "__pycache__" not in path.parts
]
GUIDE = (DOCS / "partners/guide.md").read_text("utf-8")


async def read(running, address):
    browser = {"Accept": "text/html"}
    async with running.client.get(address, headers=browser, allow_redirects=False) as response:
        assert response.status == 200, address
        return await response.text()


def links_of(page):
    found = re.findall(r'(?:href|src)="([^"]+)"', page)
    return {html.unescape(link) for link in found}


async def test_every_document_is_reachable_from_docs_and_no_link_is_broken(running):
    front = "/test/docs"
    pages, waiting, others = {}, [front], set()
    while waiting:
        address = waiting.pop()
        pages[address] = await read(running, address)
        for link in {urljoin(address, link) for link in links_of(pages[address])}:
            path = urlsplit(link).path
            if urlsplit(link).scheme:
                continue
            if not path.startswith(front) or path == f"{front}/reference":
                others.add(path)
            elif path not in pages and path not in waiting:
                waiting.append(path)

    for path in others:
        await read(running, path)
    for address, page in pages.items():
        for link in links_of(page):
            target, _, fragment = urljoin(address, link).partition("#")
            if fragment and target in pages:
                assert f'id="{fragment}"' in pages[target], (address, link)
    documents = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    assert set(pages) == {front} | {f"{front}/{name}" for name in documents - {"index"}}


@pytest.mark.parametrize("name", ["nothing", "partners", "partners/guide.md", "..%2Fpyproject"])
async def test_an_unknown_document_is_not_found(running, name):
    async with running.client.get(f"/docs/{name}") as response:
        assert response.status == 404


def test_html_in_a_document_is_escaped(tmp_path: Path):
    (tmp_path / "index.md").write_text("# T\n\na <script>b</script> `<i>`\n", "utf-8")

    body = Documents(tmp_path).render("index")

    assert "<script>" not in body
    assert "<i>" not in body


async def test_the_partner_guide_contains_every_program_to_read_and_to_download(running):
    page = html.unescape(await read(running, "/docs/partners/guide"))

    assert PROGRAMS
    for name in PROGRAMS:
        source = (DOCS / name).read_text("utf-8")
        assert source in page
        assert await read(running, f"/static/documents/{name}") == source


@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_the_booking_in_the_guide_is_accepted_by_the_test_environment(running, prefix):
    page = html.unescape(await read(running, f"{prefix}/docs/partners/guide"))
    base = str(running.client.make_url("/test"))

    assert f"export SERVICE_URL={base}\n" in page
    day, slot = re.search(r"export DAY=(\S+) SLOT=(\S+)\n", page).groups()
    booking = json.loads(
        re.findall(r'<code class="language-json">(.*?)</code>', page, re.DOTALL)[0]
    )
    assert (booking["date"], booking["slot"]) == (day, slot)
    status, made, _ = await running.call("POST", "/test/v1/reservations", json=booking)
    assert (status, made["status"]) == (201, "confirmed")


def test_every_error_that_a_partner_can_get_is_explained_in_the_guide():
    table = re.findall(r"^\| (\d{3}) \| (.*?) \|", GUIDE, re.MULTILINE)
    advised = {code for _, codes in table for code in re.findall(r"[A-Z_]+", codes)}
    described = build_document(PARTNER_ROUTE_TABLE, [])["components"]["schemas"]["ErrorCode"]

    assert advised == set(described["examples"])


def test_the_guide_shows_every_event_with_the_example_of_the_openapi_document():
    events = re.findall(r"^\| `((?:reservation|venue|webhook)\.\w+)`", GUIDE, re.MULTILINE)
    shown = [json.loads(text) for text in re.findall(r"```json\n(.*?)\n```", GUIDE, re.DOTALL)]

    assert events == [*EVENT_TYPES, *EXTRA_TYPES]
    assert shown == [
        example("CreateReservation"),
        example("CreationResult"),
        sample_event("reservation.created"),
    ]
