"""A form that is refused is shown again: the reason beside its field, and what was typed."""

import re
from pathlib import Path

import pytest

from appliance.commands.console import Console
from appliance.commands.init import found_unfurnished_box
from appliance.data_directory import DataDirectory
from appliance.settings import Settings
from appliance.tokens import Tokens
from tests.conftest import running_box
from tests.web.portal.people import a_person

LONG = "x" * 300
MAIL = {"host": "smtp.riad.example", "port": "587", "security": "starttls", "user": "riad",
        "password": "a secret of ours", "sender": "riad@riad.example", "do": "save"}  # fmt: skip
SLOT = {"name": "Late", "start": "22:00", "end": "23:30", "days": "1"}
VENUE = {"name": "Dar Zitoun", "slug": "dar-zitoun", "time_zone": "Africa/Casablanca",
         "currency": "MAD", "reservation_mode": "prepaid"}  # fmt: skip


@pytest.fixture
async def new_box(tmp_path: Path, clock):
    found_unfurnished_box(DataDirectory(tmp_path), Console(clock, Tokens(), {}))
    async with running_box(tmp_path, clock, Settings()) as running:
        yield running


def said_at(page: str, name: str) -> str:
    """What is said beside that field, which is marked and has the keyboard."""
    tag = re.search(rf'<(?:input|select|textarea)[^>]*\bname="{name}"[^>]*>', page)[0]
    assert re.search(r'aria-invalid="true" aria-describedby="refused\b[^"]*" autofocus', tag), tag
    behind = page[page.index(tag) :]
    return re.search(r'id="refused" role="alert">([^<]*)<', behind)[1]


def value_of(page: str, name: str) -> str:
    return re.search(rf'<input name="{name}"[^>]*\bvalue="([^"]*)"', page)[1]


@pytest.mark.parametrize(
    ("step", "form", "field", "said"),
    [
        ("venue", {**VENUE, "name": ""}, "name", "Please give a name."),
        ("venue", {**VENUE, "name": LONG}, "name", "Please give at most 200 characters."),
        ("venue", {**VENUE, "slug": "Dar Zitoun"}, "slug",
         "Please give lower-case letters and digits, joined by hyphens."),
        ("venue", {**VENUE, "time_zone": "Morocco time"}, "time_zone",
         "Please give a name of the list, such as Africa/Casablanca."),
        ("venue", {**VENUE, "currency": "dirham"}, "currency",
         "Please give three capital letters, such as MAD."),
        ("tables", {"tables": "", "do": "look"}, "tables", "Please give at least one line."),
        ("slots", {**SLOT, "start": "10 pm"}, "start", "A time such as 19:30."),
        ("slots", {**SLOT, "days": "9"}, "days", "Please give weekdays."),
        ("slots", {key: SLOT[key] for key in ("name", "start", "end")}, "days",
         "At least one day."),
        ("mail", {**MAIL, "port": "smtp"}, "port", "Please give a whole number from 1 to 65535."),
        ("mail", {**MAIL, "security": "much"}, "security", "Please give starttls, tls or none."),
        ("mail", {**MAIL, "sender": ""}, "sender",
         "Please give the email address that letters come from."),
        ("mail", {**MAIL, "do": "try"}, "recipient",
         "Please give the address that it is to be sent to."),
        ("mail", {**MAIL, "host": "", "do": "try"}, "host",
         "Please give a server, such as smtp.example.com."),
        ("address", {"app_url": "riad.example"}, "app_url",
         "Please give a whole address without a path, such as https://box.example.com."),
        ("phone", {"name": ""}, "name", "Please give a name."),
    ],
)  # fmt: skip
async def test_a_step_of_the_setup_says_what_is_wrong_beside_its_field(
    new_box, step, form, field, said
):
    owner = await a_person(new_box)

    status, page, _ = await owner.post(f"/portal/setup/{step}", form)

    assert (status, said_at(page, field)) == (400, said)
    assert page.count('class="refused"') == 1
    assert '<p class="problem"' not in page
    for name, text in form.items():
        if name not in {"tables", "security", "days", "do", "password", "reservation_mode"}:
            assert value_of(page, name) == text, name


async def test_what_was_chosen_and_ticked_stays_as_well(new_box):
    owner = await a_person(new_box)

    _, page, _ = await owner.post("/portal/setup/venue", {**VENUE, "currency": "?"})
    assert 'value="prepaid" checked' in page
    assert re.search(r'name="auto_confirm" value="1" *>', page)
    _, page, _ = await owner.post("/portal/setup/slots", {**SLOT, "start": "?"})
    assert len(re.findall(r'name="days" value="\d" checked', page)) == 1
    _, page, _ = await owner.post("/portal/setup/phone", {"name": "", "role": "scan"})
    assert '<option value="scan" selected>' in page


async def test_a_mail_password_is_kept_and_told_nobody_when_another_field_is_refused(new_box):
    owner = await a_person(new_box)

    _, page, _ = await owner.post("/portal/setup/mail", {**MAIL, "port": "?"})
    assert MAIL["password"] not in page
    assert "leave it empty to keep it" in page
    again = {**MAIL, "password": "", "do": "try", "recipient": "nobody"}
    _, page, _ = await owner.post("/portal/setup/mail", again)
    assert "leave it empty to keep it" in page
    status, _, _ = await owner.post("/portal/setup/mail", {**MAIL, "password": ""})

    assert status == 303
    assert f'password = "{MAIL["password"]}"' in (
        new_box.live.database.path.parent / "settings.toml"
    ).read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("", 400, "Please give a name."),
        (LONG, 400, "Please give at most 200 characters."),
        ("OWNER 5", 409, "Somebody here signs in as OWNER 5: choose another name."),
    ],
)
async def test_an_invitation_says_what_is_wrong_with_it_and_keeps_what_was_typed(
    running, name, status, said
):
    owner = await a_person(running)

    answered, page, _ = await owner.post("/portal/people", {"name": name, "role": "manager"})

    assert (answered, said_at(page, "name")) == (status, said)
    assert value_of(page, "name") == name
    assert '<option value="manager" selected>' in page


async def test_what_is_declined_of_a_person_is_said_on_their_card(running):
    owner, other = await a_person(running), await a_person(running, "host")
    await a_person(running, "door")

    _, page, _ = await owner.post(f"/portal/people/{owner.id}/disable")
    card = page[page.index(f'aria-labelledby="p-{owner.id}"') :].split("</li>")[0]
    assert '<p class="problem" role="alert" tabindex="-1" autofocus>At least one owner' in card
    assert page.count('class="problem"') == 1
    status, page, _ = await owner.post(
        f"/portal/people/{other.id}/role", {"seen": "host", "role": "king"}
    )

    card = page[page.index(f'aria-labelledby="p-{other.id}"') :].split("</li>")[0]
    assert (status, "Role: please give a role of the list." in card) == (400, True)


@pytest.mark.parametrize("path", ["preview", "tables"])
async def test_a_list_of_tables_that_is_empty_or_too_long_is_asked_for_once_more(running, path):
    manager = await a_person(running, "manager")

    status, page, _ = await manager.post(f"/portal/venue/{path}", {"list": "  "})
    assert (status, said_at(page, "list")) == (400, "Please give at least one line.")
    status, page, _ = await manager.post(f"/portal/venue/{path}", {"list": "T" * 50_001})

    assert (status, said_at(page, "list")) == (400, "Please give at most 50000 characters.")
    assert "T" * 50_001 in page


async def test_a_file_that_is_chosen_counts_more_than_the_list_it_mends(running):
    manager = await a_person(running, "manager")

    _, page, _ = await manager.post("/portal/venue/preview", {"list": "X1;a;b", "file": "X1;a;2"})

    assert "cannot be read" not in page
    assert "1 new table" in page
