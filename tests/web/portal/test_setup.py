"""The setup wizard: the first owner, its steps, and the same steps opened again later."""

import asyncio
import re
from dataclasses import replace

import pytest

from appliance.actions.edit_tables import add_tables
from appliance.actions.edit_venue import edit_venue
from appliance.actions.set_up import SETUP_LINK_MILLISECONDS, offer_setup
from appliance.actions.sign_in import OpenedSession
from appliance.commands.console import Console
from appliance.commands.init import found_unfurnished_box
from appliance.data_directory import DataDirectory
from appliance.model.letter import Outcome
from appliance.model.venue import fingerprint
from appliance.model.venue_list import parse_tables
from appliance.settings import Settings, read_settings
from appliance.store.venue import get_venue, list_slots, list_tables
from appliance.tokens import Tokens
from tests.conftest import Running, running_box
from tests.web.portal.people import FROM_OURS, PASSWORD, Person, a_person
from tests.web.portal.seating import value_of
from web.first_start import show_setup_link
from web.portal.setup.room import tidy_lines


@pytest.fixture
async def new_box(tmp_path, clock):
    """A box made of nothing, before anybody owns it."""
    found_unfurnished_box(DataDirectory(tmp_path), Console(clock, Tokens(), {}))
    async with running_box(tmp_path, clock, Settings()) as running:
        yield running


async def a_link(running: Running) -> str:
    secret = await running.live.database.write(offer_setup)
    assert secret is not None
    return secret


async def send(running: Running, secret: str, name="Yasmine", password=PASSWORD, **headers):
    form = {"link": secret, "name": name, "password": password, "language": "en"}
    async with running.client.post(
        "/portal/setup", data=form, headers={**FROM_OURS, **headers}, allow_redirects=False
    ) as response:
        cookie = response.cookies.get("__Host-venuebox-session")
        return response.status, await response.text(), cookie.value if cookie else None


async def the_owner(running: Running) -> Person:
    _, _, secret = await send(running, await a_link(running))
    assert secret is not None
    return Person("owner", running, OpenedSession(secret, ""))


@pytest.mark.proves("S8", "V6")
async def test_before_there_is_an_owner_nothing_answers_but_the_setup_page(new_box):
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


@pytest.mark.proves("S8")
async def test_used_expired_replaced_and_unknown_links_get_the_very_same_answer(new_box):
    replaced, expired = await a_link(new_box), await a_link(new_box)
    new_box.clock.advance(SETUP_LINK_MILLISECONDS / 1000)
    answers = {(await send(new_box, s))[:2] for s in (replaced, expired, "unknown", "")}
    used = await a_link(new_box)
    await send(new_box, used)
    answers.add((await send(new_box, used, name="Karim"))[:2])

    [(status, _text)] = answers
    assert status == 404


@pytest.mark.proves("S8")
async def test_of_two_who_open_the_link_at_once_one_becomes_the_owner(new_box):
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
async def test_a_bad_password_is_explained_and_the_link_stays_good(new_box, password):
    secret = await a_link(new_box)
    status, _, _ = await send(new_box, secret, password=password)
    assert status == 400
    assert (await send(new_box, secret))[0] == 303


@pytest.mark.proves("S8")
async def test_ten_tries_a_minute_and_no_more(new_box):
    for _ in range(10):
        await send(new_box, "guess")
    assert (await send(new_box, await a_link(new_box)))[0] == 429


@pytest.mark.proves("S8")
async def test_no_link_is_offered_once_there_is_an_owner(new_box, capsys):
    await show_setup_link(new_box.box, "http://127.0.0.1:1", as_qr=True)
    shown = capsys.readouterr().out
    secret = re.search(r"#([\w-]{43})\n", shown)[1]
    assert "█" in shown
    assert (await send(new_box, secret))[0] == 303

    await show_setup_link(new_box.box, "http://127.0.0.1:1", as_qr=True)

    assert capsys.readouterr().out == ""


async def test_the_wizard_furnishes_both_environments(new_box):
    owner = await the_owner(new_box)
    _, text, _ = await owner.get("/portal/setup/venue")
    seen = re.search(r'name="seen" value="(\w+)"', text)[1]

    venue = {"seen": seen, "name": "Riad Âtlas", "time_zone": "Africa/Casablanca",
             "currency": "mad", "reservation_mode": "free", "auto_confirm": "1"}  # fmt: skip
    assert (await owner.post("/portal/setup/venue", venue))[0] == 303
    look = {"tables": "T1–T12, 2–4 places\nVIP1;Salon;4;10;vip;3000", "do": "look"}
    status, text, _ = await owner.post("/portal/setup/tables", look)
    assert status == 200
    assert (await owner.post("/portal/setup/tables", {**look, "do": "add"}))[0] == 303
    slot = [("name", "Dîner"), ("start", "19:30"), ("end", "22:00"), ("days", "5"), ("days", "6")]
    assert (await owner.post("/portal/setup/slots", slot))[0] == 303

    for environment in new_box.box.environments:
        venue_ = await environment.database.read(get_venue)
        assert (venue_.name, venue_.slug, venue_.status) == ("Riad Âtlas", "riad-atlas", "active")
        tables = await environment.database.read(list_tables)
        assert [t.number for t in tables] == [f"T{n}" for n in range(1, 13)] + ["VIP1"]
        assert {(t.capacity_min, t.capacity_max) for t in tables} == {(2, 4), (4, 10)}
        [found] = await environment.database.read(list_slots)
        assert (found.start, found.days_of_week) == ("19:30", (5, 6))


async def test_mail_and_address_are_written_to_the_settings_file(new_box, tmp_path):
    owner = await the_owner(new_box)

    mail = {"host": "smtp.example.com", "port": "465", "security": "tls", "user": "box",
            "password": 'p"w', "sender": "box@example.com", "do": "save"}  # fmt: skip
    assert (await owner.post("/portal/setup/mail", mail))[0] == 303
    address = {"app_url": "https://riad.example/"}
    assert (await owner.post("/portal/setup/address", address))[0] == 303
    bad = await owner.post("/portal/setup/address", {"app_url": "riad"})

    settings = read_settings(tmp_path / "settings.toml", {})
    assert (settings.mail.host, settings.mail.password) == ("smtp.example.com", 'p"w')
    assert settings.server.app_url == "https://riad.example"
    assert bad[0] == 400
    _, text, _ = await owner.get("/portal/setup/mail")
    assert "p&#34;w" not in text


async def test_the_stored_password_goes_to_no_other_mail_server(new_box, tmp_path):
    owner = await the_owner(new_box)
    mail = {"host": "smtp.example.com", "port": "465", "security": "tls", "user": "box",
            "password": "only for them", "sender": "box@example.com", "do": "save"}  # fmt: skip
    await owner.post("/portal/setup/mail", mail)

    await owner.post("/portal/setup/mail", {**mail, "password": "", "port": "587"})
    kept = read_settings(tmp_path / "settings.toml", {}).mail
    await owner.post("/portal/setup/mail", {**mail, "password": "", "user": "",
                                               "host": "smtp.evil.example"})  # fmt: skip
    moved = read_settings(tmp_path / "settings.toml", {}).mail

    assert (kept.port, kept.password) == (587, "only for them")
    assert (moved.host, moved.password) == ("smtp.evil.example", "")


async def test_a_step_can_wait_and_the_progress_is_kept(new_box):
    owner = await the_owner(new_box)
    _, _, headers = await owner.post("/portal/setup/later", {"step": "venue"})
    assert headers["Location"] == "/portal/setup/tables"
    _, text, _ = await owner.get("/portal/setup/tables")
    assert text.count('class="behind"') == 1
    assert (await owner.post("/portal/setup/later", {"step": "nonsense"}))[0] == 400


@pytest.mark.parametrize(
    ("line", "tidy"),
    [("T1–T12, 2–4 places", "T1–T12;;2;4"), ("T1, 4", "T1;;1;4"),
     ("T1-T3 ; 2 à 6 personnes", "T1-T3;;2;6"), ("T1;Terrasse;2;4", "T1;Terrasse;2;4"),
     ("T1", "T1")],
)  # fmt: skip
def test_a_short_line_says_how_many_sit_there(line, tidy):
    assert tidy_lines(line) == tidy


VENUE_STEP = "/portal/setup/venue"


async def change(environment, **changes):
    """The venue of that environment, otherwise."""

    def edit(tx):
        venue = get_venue(tx)
        edit_venue(tx, fingerprint(venue), replace(venue, **changes))
        return get_venue(tx)

    return await environment.database.write(edit)


async def save_unchanged(owner, **changes):
    """The form of the venue's step, sent as it was shown."""
    _, page, _ = await owner.get(VENUE_STEP)
    names = ("seen", "name", "slug", "time_zone", "currency")
    form = {name: value_of(page, name) for name in names}
    return await owner.post(
        VENUE_STEP, {**form, "reservation_mode": "free", "auto_confirm": "1", **changes}
    )


async def test_a_test_environment_that_was_made_different_is_left_alone(running, owner):
    await change(running.live, address="12 derb El Ferrane")
    tried = await change(running.test, name="Tried out", policies={"dress": "none"})
    more = parse_tables("X9;Tried;2;4", frozenset()).tables
    await running.test.database.write(add_tables, more)
    slots = await running.test.database.read(list_slots)
    tables = await running.test.database.read(list_tables)

    assert (await save_unchanged(owner, name="Riad Atlas II"))[0] == 303
    add = {"tables": "T20, 2-4", "do": "add"}
    assert (await owner.post("/portal/setup/tables", add))[0] == 303
    slot = {"name": "Late", "start": "02:00", "end": "03:00", "days": "5"}
    assert (await owner.post("/portal/setup/slots", slot))[0] == 303

    assert (await running.live.database.read(get_venue)).name == "Riad Atlas II"
    assert await running.test.database.read(get_venue) == tried
    assert await running.test.database.read(list_tables) == tables
    assert await running.test.database.read(list_slots) == slots


async def test_a_test_environment_that_is_still_the_same_follows(running, owner):
    before = await running.live.database.read(get_venue)
    await change(running.test, **{
        name: getattr(before, name) for name in before.__slots__ if name != "id"
    })  # fmt: skip

    assert (await save_unchanged(owner, currency="eur"))[0] == 303
    assert (await owner.post("/portal/setup/tables", {"tables": "T20, 2-4", "do": "add"}))[0] == 303

    assert (await running.test.database.read(get_venue)).currency == "EUR"
    live, test = [
        [table.number for table in await environment.database.read(list_tables)]
        for environment in (running.live, running.test)
    ]
    assert "T20" in live
    assert live == test


MAIL = "/portal/setup/mail"
TYPED = {
    "host": "smtp.example.com", "port": "465", "security": "tls", "user": "box",
    "sender": "box@example.com", "recipient": "yasmine@example.com",
}  # fmt: skip


@pytest.fixture
def tried(monkeypatch):
    """The passwords that went to a mail server."""
    passwords = []

    async def send(mail, *_):
        passwords.append((mail.host, mail.password))
        return Outcome("accepted", None)

    monkeypatch.setattr("web.portal.box.letters.send_trial", send)
    return passwords


def saved(running):
    path = running.live.database.path.parent / "settings.toml"
    return read_settings(path, {}).mail if path.exists() else None


async def test_what_was_tried_is_saved_without_typing_it_again(running, owner, tried):
    _, page, _ = await owner.post(MAIL, {**TYPED, "password": "thé", "do": "try"})
    assert "thé" not in page
    await owner.post(MAIL, {**TYPED, "password": "", "do": "try"})

    status, _, _ = await owner.post(MAIL, {**TYPED, "password": "", "do": "save"})

    assert status == 303
    assert tried == [("smtp.example.com", "thé")] * 2
    assert saved(running).password == "thé"


@pytest.mark.parametrize(("host", "seconds"), [("evil.example", 0), ("smtp.example.com", 1801)])
async def test_a_tried_password_goes_to_its_server_alone(running, owner, tried, host, seconds):
    await owner.post(MAIL, {**TYPED, "password": "thé", "do": "try"})
    running.clock.advance(seconds)
    status, _, _ = await owner.post(MAIL, {**TYPED, "host": host, "password": "", "do": "save"})
    assert status == 400
    assert saved(running) is None or saved(running).host == ""


async def test_another_person_does_not_get_it(running, owner, tried):
    await owner.post(MAIL, {**TYPED, "password": "thé", "do": "try"})
    other = await a_person(running, name="Karim")
    status, _, _ = await other.post(MAIL, {**TYPED, "password": "", "do": "save"})
    assert status == 400
