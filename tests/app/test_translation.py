"""Browsers that translate a page do not change names of guests and tables, or codes."""

from html.parser import HTMLParser

import pytest

from tests.app.portal.door_room import a_terminal, scan
from tests.app.portal.people import a_person
from tests.app.portal.seating import path_of, seat
from tests.builders import table_id

GUEST, TABLE, NUMBER, CODE = "Rose Petit", "Jardin Secret", "Zinc1", "SVC-7K2M"
NAMES = ("Rose", "Jardin Secret", NUMBER, CODE)
UNSEEN = {"title", "script", "style", "template", "textarea"}
VOID = {"input", "img", "br", "meta", "link", "hr", "use", "path", "source", "wbr", "col"}


class Names(HTMLParser):
    """Collects the texts with a name that a browser would translate, and counts the others."""

    def __init__(self):
        super().__init__()
        self.open, self.translated, self.kept = [], [], 0

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append((tag, ("translate", "no") in attributes))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, text):
        if any(tag in UNSEEN for tag, _ in self.open) or not any(name in text for name in NAMES):
            return
        if any(is_kept for _, is_kept in self.open):
            self.kept += 1
        else:
            self.translated.append(text.strip())


@pytest.mark.parametrize("language", ["fr", "ar"])
async def test_no_page_lets_a_browser_translate_names(running, language):
    sql = "UPDATE venue_table SET name = :name, number = :number WHERE id = :id"
    renamed = {"name": TABLE, "number": NUMBER, "id": table_id("T1")}
    for environment in (running.live, running.test):
        await environment.database.write(lambda tx: tx.execute(sql, renamed))
    guest = await seat(running, customer_name=GUEST, access_code=CODE, customer_phone="0612345678")
    _, token = await a_terminal(running)
    await scan(running, token, CODE)
    host = await a_person(running, "owner")
    keyring = running.live.keyring
    pages = [
        "/portal/tonight", "/portal/tonight/sheet", "/portal/reservations", path_of(guest),
        f"{path_of(guest)}?part=1", "/portal/reservations/new?date=2026-11-21", "/portal/door/log",
        "/portal/venue", f"/portal/venue/tables/{table_id('T1')}", "/portal/door",
        f"/access/{keyring.access_token(guest.id, 0)}",
        f"/book/{keyring.access_token(guest.id, 0)}",
        f"/claim-guest/{keyring.claim_token(guest.id, 0)}",
        f"/claim-guest/{keyring.claim_token(guest.id, 0)}/cancel", "/test/book",
    ]  # fmt: skip

    translated, kept = {}, 0
    for path in pages:
        status, page, _ = await host.get(path, **{"Accept-Language": language})
        found = Names()
        found.feed(page)
        assert status == 200, path
        if found.translated:
            translated[path] = found.translated
        kept += found.kept
    assert translated == {}
    assert kept > len(pages)
