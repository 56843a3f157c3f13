"""The box's page: checks, emails, settings, restart, clock."""

import re

import pytest

from appliance.box import find_heartbeat, write_heartbeat
from appliance.clock import parse_instant
from appliance.core.settings import read_settings
from appliance.doctor.observations import PROXY_SILENT, observe
from appliance.staff.audit_log import list_audit_entries
from tests.app.portal.people import a_person
from tests.conftest import with_settings
from web.portal.cookies import RESTART


async def test_what_the_box_reports_is_shown_as_text(running, manager):
    await running.live.database.write(observe, PROXY_SILENT, "no way out <b>", "10.0.0.1")
    _, text, _ = await manager.get("/portal/box?again=1")
    assert "no way out &lt;b&gt;" in text


async def test_only_an_owner_restarts_the_box_and_only_where_it_can(running):
    asked = []
    assert RESTART not in running.app
    owner, manager = await a_person(running), await a_person(running, "manager")
    assert (await owner.post("/portal/box/restart"))[0] == 200
    running.app._state[RESTART] = lambda: asked.append(True)

    assert (await manager.post("/portal/box/restart"))[0] == 403
    assert asked == []
    status, text, _ = await owner.post("/portal/box/restart")

    assert (status, "The box is restarting" in text, asked) == (200, True, [True])


PATH = "/portal/box/settings"
FORM = {
    "booking.enabled": "1",
    "guest.cancel_hours": "6",
    "mail.reminder_hours": "0",
    "door.early_minutes": "45",
    "retention.contact_days": "7",
}
MAIL_PATH = "/portal/box/mail"
MAIL = {
    "host": "smtp.example.com", "port": "465", "security": "tls", "user": "box@example.com",
    "password": "only for them", "sender": "box@example.com",
}  # fmt: skip
BUTTON = 'action="/portal/box/restart"'
SAVED = "/portal/box?tab=settings&note=saved"


@pytest.fixture
def settings():
    return with_settings()


@pytest.fixture
async def owner(running):
    running.app._state[RESTART] = list
    return await a_person(running)


def found_in(path):
    settings = read_settings(path / "settings.toml", {})
    return {name: getattr(getattr(settings, name.split(".")[0]), name.split(".")[1])
            for name in FORM}  # fmt: skip


async def noted(running):
    sql = "SELECT actor, detail FROM audit_log WHERE what = 'settings_changed'"
    return await running.live.database.read(lambda reader: list(reader.rows(sql)))


async def test_the_owner_switches_them_and_is_offered_the_restart(running, owner, tmp_path):
    assert BUTTON not in (await owner.get("/portal/box"))[1]

    status, _, headers = await owner.save(PATH, FORM)

    assert (status, headers["Location"]) == (303, "/portal/box?tab=settings&note=saved-for-later")
    assert found_in(tmp_path) == {
        "booking.enabled": True, "guest.cancel_hours": 6, "mail.reminder_hours": 0,
        "door.early_minutes": 45, "retention.contact_days": 7,
    }  # fmt: skip
    _, page, _ = await owner.get("/portal/box?tab=settings")
    assert BUTTON in page
    assert (
        'name="guest.cancel_hours" type="number" inputmode="numeric" min="0" max="720" value="6"'
        in page
    )
    [(actor, detail)] = await noted(running)
    assert actor == f"staff:{owner.id}"
    assert all(name in detail for name in FORM)


async def test_a_setting_that_is_set_back_needs_no_restart(running, owner, tmp_path):
    defaults = {name: str(int(value)) for name, value in found_in(tmp_path).items()}
    del defaults["booking.enabled"]

    assert (await owner.save(PATH, defaults))[2]["Location"] == SAVED
    assert not (tmp_path / "settings.toml").exists()
    assert await noted(running) == []
    await owner.save(PATH, {**defaults, "door.early_minutes": "5"})
    assert (await owner.save(PATH, defaults))[2]["Location"] == SAVED
    assert BUTTON not in (await owner.get("/portal/box"))[1]
    assert [detail for _, detail in await noted(running)] == ['{"name":"door.early_minutes"}'] * 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("guest.cancel_hours", "721"), ("mail.reminder_hours", "-1"), ("door.early_minutes", "9999"),
     ("retention.contact_days", "0"), ("guest.cancel_hours", "two")],
)  # fmt: skip
async def test_a_value_that_is_not_allowed_is_said_beside_its_field(owner, tmp_path, name, value):
    status, page, _ = await owner.save(PATH, {**FORM, name: value})
    assert status == 400
    field = page[page.index(f'name="{name}"') :]
    assert f'value="{value}"' in field[:200]
    assert 'aria-invalid="true"' in field[: field.index("</label>")]
    assert not (tmp_path / "settings.toml").exists()


async def test_two_tabs_do_not_overwrite_each_other(owner, tmp_path):
    _, page, _ = await owner.get("/portal/box?tab=settings")
    seen = re.search(r'action="/portal/box/settings"[^>]*>\s*<[^>]*name="seen" value="(\w+)"', page)
    await owner.save(PATH, FORM)

    stale = {**FORM, "guest.cancel_hours": "9", "app_url": "https://riad.example"}
    status, page, _ = await owner.post(PATH, {**stale, "seen": seen[1] if seen else ""})

    assert (status, "Open the page again" in page) == (409, True)
    assert 'max="720" value="9"' in page
    assert 'value="https://riad.example"' in page
    assert found_in(tmp_path)["guest.cancel_hours"] == 6
    assert (await owner.save(MAIL_PATH, MAIL))[0] == 303  # the mail form shows other settings


async def test_two_tabs_do_not_overwrite_the_mail_settings(owner, tmp_path):
    await owner.save(MAIL_PATH, MAIL)
    status, page, _ = await owner.post(MAIL_PATH, {**MAIL, "port": "25", "seen": "stale"})
    assert (status, "nothing was overwritten" in page) == (409, True)
    assert 'max="65535" value="25"' in page
    assert read_settings(tmp_path / "settings.toml", {}).mail.port == 465


async def test_a_manager_reads_them_and_changes_nothing(owner, tmp_path, manager):
    assert (await manager.post(PATH, FORM))[0] == 403
    _, page, _ = await manager.get("/portal/box?tab=settings")
    assert (f'action="{PATH}"' in page, "disabled" in page) == (False, True)
    assert not (tmp_path / "settings.toml").exists()


@pytest.mark.parametrize("wrong", ["2036-11-21T19:00:00Z", "1970-01-01T00:00:20Z"])
async def test_an_owner_says_by_a_button_that_the_boxs_clock_is_right(running, wrong):
    await running.live.database.write(write_heartbeat)
    running.clock.synchronised = False
    running.clock.set(wrong)
    owner, manager = await a_person(running), await a_person(running, "manager")
    button = 'action="/portal/box/clock"'
    assert button in (await owner.get("/portal/box?again=1"))[1]
    assert button not in (await manager.get("/portal/box"))[1]
    assert (await manager.post("/portal/box/clock", {}))[0] == 403

    status, _, headers = await owner.post("/portal/box/clock", {})

    assert (status, headers["Location"]) == (303, "/portal/box?note=clock-confirmed")
    assert button not in (await owner.get("/portal/box?again=1"))[1]
    assert running.live.database.peek(find_heartbeat) == running.box.clock.now()
    assert running.box.clock.now() == parse_instant(wrong)
    assert running.box.clock.is_believed()
    newest = (await running.live.database.read(list_audit_entries, 1))[0]
    assert (newest.what, newest.actor) == ("clock_confirmed", f"staff:{owner.id}")


async def test_the_values_of_a_mail_provider_fill_the_form(owner):
    _, page, _ = await owner.get("/portal/box?tab=mail&provider=ovh")
    assert 'name="host" value="ssl0.ovh.net"' in page
    assert 'name="port" type="number" min="1" max="65535" value="465"' in page


@pytest.mark.parametrize("tab", ["health", "settings", "backups", "mail", "version", "other"])
async def test_each_tab_of_the_box_shows_its_own_section(owner, tab):
    _, page, _ = await owner.get(f"/portal/box?tab={tab}")
    shown = {"settings": 'id="settings"', "backups": 'id="backups"', "mail": 'id="letters"',
             "version": 'id="update"'}  # fmt: skip
    sections = {*shown.values(), 'class="sheet health"'}
    assert {each for each in sections if each in page} == {shown.get(tab, 'class="sheet health"')}
