"""The box's page: checks, emails, settings, clock."""

import pytest

from appliance.box import find_heartbeat, write_heartbeat
from appliance.checks.check import RELAY_UNUSABLE, observe
from appliance.clock import parse_instant
from appliance.core.settings import read_settings
from appliance.staff.audit_log import list_audit_entries
from tests.app.portal.people import a_person, keeps_settings
from tests.conftest import with_settings


async def test_texts_reported_by_the_box_are_escaped(running, manager):
    await running.live.database.write(observe, RELAY_UNUSABLE, "no way out <b>")
    _, text, _ = await manager.get("/portal/box?again=1")
    assert "no way out &lt;b&gt;" in text


MAIL_PATH = "/portal/box/mail"
MAIL = {
    "host": "smtp.example.com", "port": "465", "security": "tls", "user": "box@example.com",
    "password": "only for them", "sender": "box@example.com",
}  # fmt: skip


@pytest.fixture
def settings():
    return with_settings()


@pytest.fixture
async def owner(running):
    keeps_settings(running)
    return await a_person(running)


async def noted(running):
    sql = "SELECT actor, detail FROM audit_log WHERE what = 'settings_changed'"
    return await running.live.database.read(lambda reader: list(reader.rows(sql)))


async def test_a_changed_setting_applies_immediately_and_is_audited(running, owner, tmp_path):
    status, _, headers = await owner.save(MAIL_PATH, MAIL)

    assert (status, headers["Location"]) == (303, "/portal/box?tab=mail&note=saved")
    found = read_settings(tmp_path / "settings.toml", {}).mail
    assert running.live.settings.mail == running.box.settings.mail == found
    assert (found.host, found.password) == ("smtp.example.com", "only for them")
    [(actor, detail)] = await noted(running)
    assert actor == f"staff:{owner.id}"
    assert "mail.host" in detail and "only for them" not in detail  # noqa: PT018


async def test_an_unchanged_setting_is_not_stored(running, owner, tmp_path):
    await owner.save(MAIL_PATH, MAIL)
    await owner.save(MAIL_PATH, MAIL)
    assert len(await noted(running)) == 1


async def test_a_setting_of_the_file_cannot_be_changed_in_the_portal(running, owner, tmp_path):
    (tmp_path / "settings.toml").write_text("[mail]\nport = 25\n", "utf-8")
    status, _, _ = await owner.save(MAIL_PATH, MAIL)
    assert status == 400
    assert read_settings(tmp_path / "settings.toml", {}).mail.host == ""


async def test_two_tabs_do_not_overwrite_each_others_mail_settings(owner, tmp_path):
    await owner.save(MAIL_PATH, MAIL)
    status, page, _ = await owner.post(MAIL_PATH, {**MAIL, "port": "25", "seen": "stale"})
    assert (status, "nothing was overwritten" in page) == (409, True)
    assert 'max="65535" value="25"' in page
    assert read_settings(tmp_path / "settings.toml", {}).mail.port == 465


async def test_a_manager_cannot_change_settings(owner, manager):
    assert (await manager.post(MAIL_PATH, MAIL))[0] == 403


@pytest.mark.parametrize("wrong", ["2036-11-21T19:00:00Z", "1970-01-01T00:00:20Z"])
async def test_an_owner_can_confirm_with_a_button_that_the_boxs_clock_is_right(running, wrong):
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


async def test_choosing_a_mail_provider_fills_in_the_form(owner):
    _, page, _ = await owner.get("/portal/box?tab=mail&provider=ovh")
    assert 'name="host" value="ssl0.ovh.net"' in page
    assert 'name="port" type="number" min="1" max="65535" value="465"' in page


@pytest.mark.parametrize("tab", ["health", "backups", "mail", "version", "other"])
async def test_each_tab_of_the_box_page_shows_its_own_section(owner, tab):
    _, page, _ = await owner.get(f"/portal/box?tab={tab}")
    shown = {"backups": 'id="backups"', "mail": 'id="letters"', "version": 'id="update"'}
    sections = {*shown.values(), 'class="sheet health"'}
    assert {each for each in sections if each in page} == {shown.get(tab, 'class="sheet health"')}
