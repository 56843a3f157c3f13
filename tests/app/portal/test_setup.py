"""The first owner of a box, and the setup steps."""

import asyncio
import html
import re
from dataclasses import replace
from urllib.parse import unquote

import pytest

from appliance.core.settings import parse_settings, read_settings
from appliance.reservations.email_queue import Outcome
from appliance.staff.accounts import SETUP_LINK_MILLISECONDS, offer_setup
from appliance.staff.sign_in import OpenedSession
from appliance.venue.edit import edit_venue, read_furniture
from appliance.venue.model import fingerprint, get_venue, list_slots, list_tables
from tests.app.portal.people import FROM_OURS, PASSWORD, Person, a_person, keeps_settings
from tests.app.portal.seating import value_of
from tests.builders import table_id
from tests.conftest import Running
from tests.unit.arrivals import add_reservation
from web.serve import show_setup_link


async def a_link(running: Running) -> str:
    secret = await running.live.database.write(offer_setup)
    assert secret is not None
    return secret


async def send(running: Running, secret: str, name="Yasmine", password=PASSWORD, **headers):
    form = {"link": secret, "name": name, "password": password, "language": "en"}
    async with running.client.post(
        "/portal/setup", data=form, headers={**FROM_OURS, **headers}, allow_redirects=False
    ) as response:
        cookie = response.cookies.get(running.cookie("session"))
        return response.status, await response.text(), cookie.value if cookie else None


async def the_owner(running: Running) -> Person:
    _, _, secret = await send(running, await a_link(running))
    assert secret is not None
    return Person("owner", running, OpenedSession(secret, ""))


async def test_before_setup_every_address_leads_to_the_setup_page(new_box):
    for path in ("/", "/portal/tonight", "/portal/sign-in", "/portal/welcome", "/door", "/docs",
                 "/v1/venue", "/test/v1/venue", "/access/x", "/test/outbox"):  # fmt: skip
        async with new_box.client.get(path, headers={"Accept": "text/html"},
                                      allow_redirects=False) as response:  # fmt: skip
            assert (response.status, response.headers["Location"]) == (303, "/portal/setup"), path
        async with new_box.client.get(path) as response:
            assert response.status == 503, path
            assert (await response.json())["code"] == "UNAVAILABLE"
    for path in ("/health", "/portal/setup"):
        async with new_box.client.get(path) as response:
            assert response.status == 200, path


async def test_used_expired_replaced_and_unknown_links_get_identical_answers(new_box):
    replaced, expired = await a_link(new_box), await a_link(new_box)
    new_box.clock.advance(SETUP_LINK_MILLISECONDS / 1000)
    answers = {(await send(new_box, s))[:2] for s in (replaced, expired, "unknown", "")}
    used = await a_link(new_box)
    await send(new_box, used)
    answers.add((await send(new_box, used, name="Karim"))[:2])

    [(status, _text)] = answers
    assert status == 404


async def test_only_one_of_two_simultaneous_users_of_the_link_becomes_the_owner(new_box):
    secret = await a_link(new_box)

    answers = await asyncio.gather(
        send(new_box, secret, name="Yasmine"), send(new_box, secret, name="Karim")
    )

    assert sorted(answer[0] for answer in answers) == [303, 404]
    owners = await new_box.live.database.read(
        lambda r: [name for (name,) in r.rows("SELECT name FROM staff")]
    )
    assert len(owners) == 1


@pytest.mark.parametrize("password", ["short", "12345678", "Yasmine2026", "casablanca2026"])
async def test_an_unsuitable_password_is_explained_and_the_link_stays_valid(new_box, password):
    secret = await a_link(new_box)
    status, page, _ = await send(new_box, secret, password=password, **{"Accept-Language": "fr"})
    assert (status, '<html lang="fr"' in page) == (400, True)
    assert (await send(new_box, secret))[0] == 303


async def test_no_setup_link_is_offered_after_there_is_an_owner(new_box, capsys):
    await show_setup_link(new_box.box, "http://127.0.0.1:1")
    shown = capsys.readouterr().out
    secret = re.search(r"#([\w-]{43})\n", shown)[1]
    assert (await send(new_box, secret))[0] == 303

    await show_setup_link(new_box.box, "http://127.0.0.1:1")

    assert capsys.readouterr().out == ""


RULES, TABLES, SLOTS = "/portal/venue/rules", "/portal/venue/tables", "/portal/venue/slots"


async def save_rules(owner, **changes):
    """Send the rules form as shown, except for `changes`."""
    _, page, _ = await owner.get(RULES)
    names = ("seen", "name", "slug", "time_zone", "currency", "request_expiry_hours",
             "evening_ends_at", "cancel_hours", "reminder_hours", "early_minutes",
             "contact_days", "payment_hours")  # fmt: skip
    form = {name: value_of(page, name) for name in names}
    ways = {"status": "active", "reservation_mode": "free", "auto_confirm": "1",
            "names_at_door": "initial"}  # fmt: skip
    return await owner.post(RULES, {**form, **ways, **changes})


def behind_in(page):
    return re.findall(r'<a href="([^"]+)" class="behind"', page)


async def test_the_tables_entered_in_setup_are_added_to_both_environments(new_box):
    owner = await the_owner(new_box)
    status, page, _ = await owner.get(RULES)
    assert (status, behind_in(page)) == (200, [])

    assert (await save_rules(owner, name="Riad Âtlas"))[0] == 303
    tables = {"list": "T1-T12;;2;4\nVIP1;Salon;4;10;vip;3000"}
    assert (await owner.post(TABLES, tables))[0] == 303
    slot = [("name", "Dîner"), ("start", "19:30"), ("end", "22:00"), ("days", "5"), ("days", "6")]
    assert (await owner.post(SLOTS, slot))[0] == 303

    for environment in new_box.box.environments:
        venue_ = await environment.database.read(get_venue)
        assert (venue_.name, venue_.slug, venue_.status) == ("Riad Âtlas", "riad-atlas", "active")
        tables = await environment.database.read(list_tables)
        assert [t.number for t in tables] == [f"T{n}" for n in range(1, 13)] + ["VIP1"]
        assert {(t.capacity_min, t.capacity_max) for t in tables} == {(2, 4), (4, 10)}
        [found] = await environment.database.read(list_slots)
        assert (found.start, found.days_of_week) == ("19:30", (5, 6))
    assert behind_in((await owner.get("/portal/box"))[1]) == [RULES, "/portal/venue", SLOTS]


async def test_the_setup_steps_are_shown_to_the_owner_until_the_rest_is_postponed(new_box):
    owner, manager = await the_owner(new_box), await a_person(new_box, "manager")
    done = "/portal/box/setup-done"
    for path in (RULES, "/portal/venue", SLOTS, "/portal/box", "/portal/door"):
        assert done in (await owner.get(path))[1], path
        assert done not in (await manager.get(path))[1], path

    async with new_box.client.post(done, headers=FROM_OURS, allow_redirects=False) as response:
        assert "?next=/portal/box&" in unquote(response.headers["Location"])  # signed out
    assert (await owner.post(done))[0] == 303

    assert done not in (await owner.get(RULES))[1]
    for person, count in ((owner, 6), (manager, 0)):  # the steps stay listed permanently
        _, page, _ = await person.get("/portal/box")
        assert len(re.findall(r'<li><a href="/portal/[^"]*" class="', page)) == count


async def test_a_step_reports_what_is_missing_and_then_leads_to_the_next_one(new_box):
    owner = await the_owner(new_box)
    nav = re.compile(r'<nav class="setup".*?</nav>', re.DOTALL)
    before = nav.search((await owner.get(RULES))[1])[0]
    assert '<a class="button"' not in before
    await save_rules(owner, name="Riad Âtlas")
    after = nav.search((await owner.get(RULES))[1])[0]
    assert re.search('<a class="button" href="([^"]*)"', after)[1] == "/portal/venue"
    assert after.count("<p") < before.count("<p")


async def test_setup_continues_in_the_language_of_the_page(new_box):
    secret = await a_link(new_box)
    async with new_box.client.get("/portal/setup?lang=ar") as response:
        page = await response.text()
    assert 'dir="rtl"' in page
    assert page.count("autofocus") == 1
    form = {"link": secret, "name": "Yasmine", "password": PASSWORD}
    await new_box.client.post("/portal/setup?lang=ar", data=form, headers=FROM_OURS)
    [language] = await new_box.live.database.read(lambda r: [*r.rows("SELECT language FROM staff")])
    assert language == ("ar",)


@pytest.mark.parametrize("path", ["/portal/sign-in?next=/portal/door", "/portal/welcome"])
async def test_the_pages_before_signing_in_exist_in_each_language(running, path):
    async with running.client.get(path, headers=FROM_OURS) as response:
        page = await response.text()
    links = [html.unescape(link) for link in re.findall(r'href="(\?[^"]*lang=..)"', page)]
    assert len(links) == 2
    assert all(("next=%2Fportal%2Fdoor" in link) == ("next" in path) for link in links)


MAIL = {
    "host": "smtp.example.com", "port": "465", "security": "tls", "user": "box",
    "password": "only for them", "sender": "box@example.com",
}  # fmt: skip


def saved(tmp_path):
    return read_settings(tmp_path / "settings.toml", {})


async def test_the_stored_mail_password_is_not_sent_to_another_server(new_box, tmp_path):
    keeps_settings(new_box)
    owner = await the_owner(new_box)
    await owner.save("/portal/box/mail", MAIL)

    await owner.save("/portal/box/mail", {**MAIL, "password": "", "port": "587"})
    kept = saved(tmp_path).mail
    elsewhere = {**MAIL, "password": "", "host": "smtp.evil.example"}
    refused, _, _ = await owner.save("/portal/box/mail", elsewhere)
    await owner.save("/portal/box/mail", {**elsewhere, "user": ""})
    moved = saved(tmp_path).mail

    assert (kept.port, kept.password) == (587, "only for them")
    assert refused == 400
    assert (moved.host, moved.password) == ("smtp.evil.example", "")


@pytest.fixture
def sent(monkeypatch):
    """The mail server and the password that each test email used."""
    found = []

    async def send(mail, *_):
        found.append((mail.host, mail.password))
        return Outcome("accepted", None)

    monkeypatch.setattr("web.portal.box.send_once", send)
    return found


async def test_a_test_email_uses_the_saved_mail_settings(new_box, sent):
    keeps_settings(new_box)
    owner = await the_owner(new_box)
    await owner.save("/portal/box/mail", MAIL)

    status, _, _ = await owner.post("/portal/box/test-letter", {"recipient": "y@example.com"})

    assert (status, sent) == (200, [("smtp.example.com", "only for them")])


async def test_a_test_email_without_a_valid_address_is_refused_at_its_field(new_box):
    owner = await the_owner(new_box)
    status, page, _ = await owner.post("/portal/box/test-letter", {"recipient": "y@example"})
    field = page.partition('name="recipient"')[2].partition("</label>")[0]
    assert (status, 'value="y@example"' in field) == (400, True)
    assert 'aria-invalid="true"' in field


async def test_a_test_email_uses_the_settings_in_force(new_box, sent):
    """The active settings include environment variables; settings.toml does not."""
    owner = await the_owner(new_box)
    variables = {"VENUEBOX_MAIL_HOST": "smtp.example.org", "VENUEBOX_MAIL_SENDER": "y@example.org"}
    object.__setattr__(new_box.box, "settings", parse_settings("", variables))

    _, page, _ = await owner.post("/portal/box/test-letter", {"recipient": "y@example.com"})

    assert sent == [("smtp.example.org", "")]
    assert 'action="/portal/box/test-letter"' in page  # the answer is in view
    assert behind_in(page) == ["/portal/box?tab=mail"]


async def change(environment, **changes):
    """Change the venue of this environment."""

    def edit(tx):
        venue = get_venue(tx)
        edit_venue(tx, fingerprint(venue), replace(venue, **changes))
        return get_venue(tx)

    return await environment.database.write(edit)


async def test_the_test_environment_copies_the_live_venue_and_is_always_open(running, owner):
    await change(running.test, name="Tried out", policies={"dress": "none"})

    assert (await save_rules(owner, status="inactive", currency="EUR", cancel_hours="9"))[0] == 303
    closed = {"first": "2026-12-24", "last": "2026-12-25", "reason": "Fêtes"}
    assert (await owner.post("/portal/venue/closings", closed))[0] == 303

    live, test = [await each.database.read(read_furniture) for each in running.box.environments]
    followed = replace(live.venue, id=test.venue.id, status="active")
    assert (test.venue, test.closings) == (followed, live.closings)
    assert [slot.start for slot in test.slots] == [slot.start for slot in live.slots]


async def test_a_table_booked_in_test_does_not_block_later_copies_of_the_live_venue(running, owner):
    await running.test.database.write(add_reservation, table="T6")
    path = f"/portal/venue/tables/{table_id('T6')}"
    seen = value_of((await owner.get(path))[1], "seen")

    assert (await owner.post(f"{path}/remove", {"seen": seen}))[0] == 303
    for number in ("T20", "T21"):
        assert (await owner.post(TABLES, {"list": f"{number};;2;4"}))[0] == 303

    tables = await running.test.database.read(list_tables)
    assert [t.number for t in tables if t.bookable] == ["T1", "T2", "T3", "T4", "T5", "T20", "T21"]
    assert "T6" in [t.number for t in tables]
