"""The box's own room in a real browser: how it is, what it keeps, how it begins anew.

That the real process comes back is shown in test_first_journey.py.
"""

import json

import pytest

from appliance.backup.kit import key_rows
from appliance.backup.recovery_key import ensure_recovery_key
from appliance.backup.shelf import Record, write_record
from appliance.data_directory import DataDirectory
from appliance.log_files import FILE
from appliance.store.conditions import Condition, put_condition
from appliance.store.staff import set_password
from appliance.tokens import Tokens
from tests.browser.accessibility import violations
from tests.browser.keyboard import enter_room, follow, is_within, press, reach, write
from tests.browser.phones import PHONE
from tests.browser.portal_world import DESK, TABLET
from tests.web.portal.people import a_person
from tests.web.portal.test_account import HASH, OLD
from tests.web.portal.test_backing_up import with_keys
from web.portal.context import RESTART

SIZES = {"desk": DESK, "tablet": TABLET}


def lived_in(directory, now):
    """A backup of last night, and a line in the log."""
    write_record(directory, Record(now, "riad.venuebox-backup", 35_489, 7, now))
    (directory / "log").mkdir(exist_ok=True)
    line = {"at": "2026-11-21T19:00:00.123Z", "level": "warning", "from": "web", "message": "slow"}
    (directory / "log" / FILE).write_text(json.dumps(line) + "\n")


@pytest.mark.parametrize("size", SIZES)
async def test_health_backups_letters_log_and_languages_are_seen_and_tried(portal, size, tmp_path):
    lived_in(tmp_path, portal.box.clock.now())
    page = await portal.desk(role="manager", viewport=SIZES[size])
    await page.goto("/portal/tonight")

    await enter_room(page, "La box", "**/portal/box")
    assert await violations(page) == []
    await follow(page, "Regarder de nouveau", "**/portal/box?again=1")
    await reach(page, page.locator("main details summary"))
    await page.keyboard.press("Enter")
    await page.locator(".checks .chip.good").first.wait_for()
    told = await page.inner_text("main")
    await reach(page, page.locator("pre.log"))  # it can be scrolled
    await write(page, "recipient", "yasmine@example.com")
    await press(page, "Envoyer une lettre d’essai")
    await page.locator("main .problem").wait_for()  # there is no mail server
    assert await violations(page) == []
    assert await is_within(page, SIZES[size]["width"])

    for expected in ("7 réservations", "36\u202fko", "warning web: slow", "30 jours", "العربية"):
        assert expected in told
    assert portal.complaints == []


async def test_a_backup_is_made_now_and_the_owner_prints_the_kit(portal, tmp_path):
    page = await portal.desk(viewport=TABLET)
    house = portal.box.environment.database
    owner = await house.read(lambda reader: reader.value("SELECT id FROM staff"))
    await house.write(set_password, owner, HASH)
    with_keys(tmp_path)
    await page.goto("/portal/box")

    await press(page, "Sauvegarder maintenant")
    await page.get_by_text("Dernière restaurée à l’essai et trouvée entière").wait_for()
    await reach(page, page.locator("#backups summary"))
    await page.keyboard.press("Enter")
    await write(page, "password", OLD)
    assert await violations(page) == []
    await press(page, "Montrer la feuille à imprimer")

    await page.get_by_text("Kit de secours").wait_for()
    shown = await page.inner_text("body")
    assert key_rows(ensure_recovery_key(DataDirectory(tmp_path), Tokens()))[0] in shown
    assert await violations(page) == []
    assert await is_within(page, TABLET["width"])
    assert portal.complaints == []


async def test_who_reads_arabic_on_a_phone_sees_findings_from_right_to_left(portal, tmp_path):
    lived_in(tmp_path, portal.box.clock.now())
    page = await portal.desk(role="manager", language="ar", viewport=PHONE)
    condition = Condition("mail_settings", "", portal.box.clock.now(), "no letter leaves")
    await portal.box.environment.database.write(put_condition, condition)
    await page.goto("/portal/box")

    await reach(page, page.locator("main details summary").first)
    await page.keyboard.press("Enter")
    await page.locator(".checks .chip.good").first.wait_for()

    turned = await page.locator(".checks li > div").evaluate_all(
        "all => all.map(one => getComputedStyle(one).direction)"
    )
    assert set(turned) == {"rtl"}
    for place in (".checks", "#conditions + ul"):
        said = await page.locator(place).first.inner_text()
        assert ("بريد" in said, "mail." in said) == (True, False)
    assert await violations(page) == []
    assert await is_within(page, PHONE["width"])
    assert portal.complaints == []


@pytest.mark.parametrize("language", ["fr", "ar"])
async def test_the_owner_reads_the_date_of_the_machine_and_confirms_it_on_a_phone(portal, language):
    leapt = Condition("clock_leapt", "", portal.box.clock.now(), "the clock leapt")
    await portal.box.environment.database.write(put_condition, leapt)
    page = await portal.desk(language=language, viewport=PHONE)
    await page.goto("/portal/box")
    day = await page.locator("form[action$=clock] input").evaluate("one => one.type")
    assert day == "date"

    for typed, answered in (("2025-01-01", "#refused"), ("2026-11-21", ".note")):
        await page.fill("form[action$=clock] input", typed)
        await reach(page, page.locator("form[action$=clock] button"))
        await page.keyboard.press("Enter")
        await page.locator(answered).wait_for()
        assert await violations(page) == []
        assert await is_within(page, PHONE["width"])

    assert await page.locator("form[action$=clock]").count() == 0
    assert portal.complaints == []


@pytest.mark.parametrize("language", ["fr", "ar"])
async def test_the_page_of_a_restart_goes_on_once_the_settings_are_in_force(
    running, browser, tmp_path, language
):
    asked = []
    running.app._state[RESTART] = lambda: asked.append(True)
    settings, saved = tmp_path / "settings.toml", '[server]\napp_url = "{}"\n'
    settings.write_text(saved.format("https://riad.example"))
    owner = await a_person(running)
    page = await browser.new_page(viewport=TABLET, color_scheme="dark")
    page.set_default_timeout(60_000)
    name, _, value = owner.headers["Cookie"].partition("=")
    cookie = {"name": name, "value": value, "url": "https://127.0.0.1/", "secure": True}
    await page.context.add_cookies([cookie])
    await page.goto(str(running.client.make_url(f"/portal/box?lang={language}")))
    assert await violations(page) == []

    await reach(page, page.locator("form[action$=restart] button"))
    await page.keyboard.press("Enter")
    await page.locator("a[data-goes-on]").wait_for()
    assert await violations(page) == []
    settings.write_text(saved.format(running.box.settings.server.app_url))
    await page.wait_for_url("**/portal/box?again=1")

    assert asked == [True]
