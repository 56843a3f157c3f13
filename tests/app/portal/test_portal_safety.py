"""Safety of every page of the portal (docs/security.md, S15, S16, S21).

Stored markup, formulas in spreadsheets, framing by other sites, and other people's sessions. The
pages come from the route table, so that new ones are covered.
"""

import re
from html.parser import HTMLParser

import pytest

from tests.app.portal.door_room import a_terminal, scan
from tests.app.portal.people import a_person
from tests.app.portal.seating import as_it_is, path_of, rows, seat
from tests.spreadsheets import formulas_in, rows_of
from web.portal.routes import PORTAL_ROUTES

MARK = "mk9x"
MARKUP = (
    f'"><script>{MARK}</script>',
    f"'><img src={MARK} onerror={MARK}>",
    f"</title></textarea></script><svg onload={MARK}>",
    f"{{{{ {MARK}.__class__ }}}} {{% raw %}} ${{{MARK}}}",
    f'" autofocus onfocus="{MARK}',
)
# Every text that a person or a partner may have written, by table and column.
TEXTS = {
    "venue": ("name",),
    "venue_table": ("name", "type"),
    "slot": ("name",),
    "api_key": ("name",),
    "terminal": ("name", "version"),
    "staff": ("name",),
    "session": ("device",),
    "reservation": ("customer_name", "customer_phone", "customer_email", "notes", "external_ref"),
    "endpoint": ("url",),
}
GETS = sorted({route.path for route in PORTAL_ROUTES if route.method == "GET"})
STREAMS = "/events"


class Reader(HTMLParser):
    """Collects every tag and attribute of a page as a browser parses them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.inline = [], []
        self._in = None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._in = tag

    def handle_data(self, text):
        if self._in in {"script", "style"} and text.strip():
            self.inline.append(text)

    def handle_endtag(self, _tag):
        self._in = None


async def pages(running, person):
    """Return the URL of each page of the portal, with existing ids."""
    ids = []
    for table in ("reservation", "venue_table", "slot", "api_key", "terminal", "staff", "endpoint"):
        ids += [id_ for (id_,) in await rows(running, f"SELECT id FROM {table} LIMIT 1")]  # noqa: S608 - named above
    for path in GETS:
        if path.endswith(STREAMS):
            continue
        places = [path] if "{" not in path else [re.sub(r"\{[^}]*\}", id_, path) for id_ in ids]
        for place in places:
            status, text, headers = await person.get(place)
            assert status < 500, place
            yield place, status, text, headers


@pytest.fixture
async def everything(running):
    """Sign in an owner, and add rows with markup to each table."""
    owner = await a_person(running, "owner")
    await seat(running, notes="x", external_ref="x")
    await seat(running, table="T2", status="requested", access_code=None)
    await running.live.database.write(
        lambda tx: tx.insert("terminal", {"id": tx.new_id(), "name": "x", "created_at": tx.now})
    )
    return owner


async def test_entered_text_is_escaped_on_every_page(running, everything):
    markup = "".join(MARKUP)

    def write(tx):
        for table, columns in TEXTS.items():
            for column in columns:
                unique = " || rowid" if (table, column) == ("staff", "name") else ""
                tx.execute(f"UPDATE {table} SET {column} = :text{unique}", {"text": markup})  # noqa: S608 - named above

    await running.live.database.write(write)
    shown = 0

    async for place, _, text, headers in pages(running, everything):
        if not headers.get("Content-Type", "").startswith("text/html"):
            continue
        shown += MARK in text
        read = Reader(text)
        assert read.inline == [], place
        for tag, attributes in read.tags:
            assert not any(name.startswith("on") for name in attributes), (place, tag)
            assert MARK not in "".join(attributes), (place, tag)
            assert not (tag in {"img", "svg"} and MARK in str(attributes)), (place, tag)
            for name in ("href", "src", "action", "formaction"):
                target = (attributes.get(name) or "").strip().lower()
                assert not target.startswith(("javascript:", "data:text")), (place, tag)
    assert shown >= 4


RANK = ("door", "host", "manager", "owner")


def test_everyone_who_may_submit_a_form_may_see_the_page_that_shows_it():
    shown = {route.handler: route.role for route in PORTAL_ROUTES if route.method == "GET"}
    for route in PORTAL_ROUTES:
        if route.method == "POST" and route.page in shown:
            assert RANK.index(route.role) >= RANK.index(shown[route.page]), route.path


async def test_text_in_the_query_string_is_escaped(running, everything):
    markup = "".join(MARKUP)
    names = ("q", "note", "date", "from", "slot", "table", "guests", "page", "status")
    for path in GETS:
        if "{" in path or path.endswith(STREAMS):
            continue
        for query in ({"q": markup, "note": markup}, dict.fromkeys(names, markup)):
            async with running.client.get(
                path, params=query, headers=everything.headers, allow_redirects=False
            ) as response:
                assert response.status < 500, path
                text = (await response.read()).decode(errors="replace")
            read = Reader(text if response.content_type == "text/html" else "")
            assert read.inline == [], path
            names_of = [key for _, attributes in read.tags for key in attributes]
            assert not any(key.startswith("on") for key in names_of), path


async def test_no_page_can_be_framed_or_run_foreign_scripts(running, everything):
    async for place, _, _, headers in pages(running, everything):
        policy = headers["Content-Security-Policy"]
        for rule in ("default-src 'self'", "frame-ancestors 'none'", "object-src 'none'",
                     "base-uri 'none'", "form-action 'self'"):  # fmt: skip
            assert rule in policy, place
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff", place
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin", place
        assert headers["Cache-Control"] == "no-store", place
        assert headers["Referrer-Policy"] in {"same-origin", "no-referrer"}, place
        assert "camera=(self)" in headers["Permissions-Policy"], place
        assert "Access-Control-Allow-Origin" not in headers, place


async def test_viewing_pages_changes_nothing(running, everything):
    tables = [name for (name,) in await rows(
        running, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    )]  # fmt: skip

    async def everything_stored():
        return {name: await rows(running, f"SELECT * FROM {name}") for name in tables}  # noqa: S608 - as stored

    before = await everything_stored()
    async for _ in pages(running, everything):
        pass
    after = await everything_stored()

    for name in tables:
        # The heartbeat, and the audit log: it records exports of guests' data.
        if name not in {"heartbeat", "clock_mark", "observation", "audit_log"}:
            assert after[name] == before[name], name


@pytest.mark.parametrize(
    "formula",
    ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", " =1", "'=1", "x;=1+cmd|'/C'!A0;y", "x,=1",
     "x\t=1", "x\n=1", "＝1", "\xa0=1", "\u200b=1", "\x1b=1", 'x;"=1', "+212600123457"],
)  # fmt: skip
async def test_guest_text_is_never_a_formula_in_an_exported_file(running, everything, formula):
    def write(tx):
        tx.execute(
            """UPDATE reservation SET customer_name = :f, notes = :f, customer_email = :f,
                                      customer_phone = :f, external_ref = :f""",
            {"f": formula},
        )
        tx.execute("UPDATE venue_table SET name = :f, number = :f || position", {"f": formula})
        tx.execute("UPDATE terminal SET name = :f", {"f": formula})

    _, token = await a_terminal(running)
    await scan(running, token, "SVC-2345")
    await running.live.database.write(write)
    files = {}

    async for place, status, text, headers in pages(running, everything):
        if status == 200 and headers["Content-Type"].startswith("text/csv"):
            assert headers["Content-Disposition"].startswith("attachment"), place
            files[place] = text
    log = "/portal/door/log/export?format=csv"
    async with running.client.get(log, headers=everything.headers) as response:
        files[log] = await response.text()

    for place, text in files.items():
        assert formulas_in(text) == [], place
        assert len({len(row) for row in rows_of(text)}) == 1, place
        assert len(rows_of(text)) > 1, place
    assert len(files) >= 2


async def test_only_form_encoded_bodies_are_accepted(running, everything):
    salma = await seat(running, table="T3", access_code=None)
    part = b'--b\r\nContent-Disposition: form-data; name="seen"\r\n\r\n1\r\n--b--\r\n'
    for kind, body in (
        ("application/json", b'{"seen": 1}'),
        ("text/plain", b"seen=1"),
        ("multipart/form-data; boundary=b", part),
        ("application/x-www-form-urlencoded; charset=latin-1", b"seen=1"),
    ):
        status, _, _ = await everything.send(
            "POST", path_of(salma, "cancel"), data=body, headers={"Content-Type": kind}
        )
        assert status == 415
    assert (await as_it_is(running, salma)).status == "confirmed"
