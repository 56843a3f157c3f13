"""The evening board in a browser: live updates, keyboard use, and unsaved input."""

import pytest

from appliance.door.check_in import check_in
from appliance.door.scan import Reading, Scan
from appliance.door.terminals import get_terminal, issue_terminal
from appliance.reservations.change import cancel, move_to_table
from tests.browser.keyboard import is_within
from tests.browser.phones import PHONE
from tests.builders import table_id

NOTES = "#drawer [name=notes]"
OUT = "[data-out-of-reach]"
A4 = {"width": 703, "height": 1032}  # between margins of 12 mm
LONG = "Donaudampfschifffahrtsgesellschaftskapitän Müller-Lüdenscheidt"
PRESS = """([key, code]) => {
  document.activeElement.blur();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code, bubbles: true }));
  return document.activeElement.name || document.activeElement.type || "";
}"""
INSIDE = "document.querySelector('#drawer').contains(document.activeElement)"


async def scan(portal, reservation):
    """Scan the guest's pass at the door."""
    terminal_id, _ = await portal.box.environment.database.write(issue_terminal, "Porte 1")

    def read(tx):
        reading = Reading("list", (reservation.id,))
        return check_in(tx, get_terminal(tx, terminal_id), Scan(tx.new_id(), reading))

    assert (await portal.box.environment.database.write(read)).verdict.admitted


def chip(reservation):
    return f'[data-reservation="{reservation.id}"]'


async def tonight(portal, role="owner", **options):
    page = await portal.desk(role, **options)
    await page.goto("/portal/tonight")
    return page


async def open_drawer(portal, reservation):
    page = await tonight(portal)
    await page.click(f"table {chip(reservation)}")
    await page.click("#drawer summary:has-text('Corriger')")
    return page


async def look_at(page, reservation):
    await page.evaluate(
        "id => document.querySelector(`[data-reservation='${id}']`).click()", reservation.id
    )
    await page.wait_for_selector(f"#drawer [data-detail='{reservation.id}']")


async def save(page):
    await page.click("#drawer form[action$='/amend'] button:not([type=button])")


async def shown(page):
    return await page.eval_on_selector_all(
        "[data-board] tbody tr th b", "all => all.map(b => b.textContent)"
    )


async def test_the_board_shows_new_bookings_arrivals_moves_and_cancellations_without_a_reload(
    portal,
):
    page = await tonight(portal)
    database = portal.box.environment.database
    await database.write(
        lambda tx: tx.execute("UPDATE venue_table SET bookable = 0 WHERE number = 'T3'")
    )
    await page.reload()
    assert await shown(page) == ["T1", "T2", "T4", "T5"]

    salma = await portal.box.guest(slot="19:30")
    await page.wait_for_selector(chip(salma))
    await scan(portal, salma)
    await page.wait_for_selector(f"{chip(salma)}.in")
    assert "2 / 2" in await page.inner_text("#totals")

    for number, rows in (("T3", ["T1", "T2", "T3", "T4", "T5"]), ("T2", ["T1", "T2", "T4", "T5"])):
        now = await portal.box.now_of(salma)
        await database.write(move_to_table, now.id, table_id(number), actor="box")
        await page.wait_for_selector(f"#t-{table_id(number)} {chip(salma)}")
        assert await shown(page) == rows
    assert await page.locator(f"table {chip(salma)}").count() == 1

    omar = await portal.box.guest(slot="22:00")
    await page.click(chip(omar))
    await page.wait_for_selector("#drawer [data-detail]")
    await database.write(cancel, omar.id, actor="box")
    await page.wait_for_selector(chip(omar), state="detached")
    assert portal.complaints == []


async def test_the_drawer_keeps_the_focus_and_returns_it_when_closed_by_keyboard(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await tonight(portal)
    await page.focus(chip(salma))

    await page.keyboard.press("Enter")
    await page.wait_for_selector("#drawer [data-detail]")
    seen = set()
    for key in ["Tab"] * 30 + ["Shift+Tab"] * 30:
        assert await page.evaluate(INSIDE)
        await page.keyboard.press(key)
        seen.add(await page.evaluate("document.activeElement.outerHTML"))
    assert len(seen) > 5

    await page.keyboard.press("Escape")
    assert await page.inner_html("#drawer") == ""
    assert await page.evaluate("document.activeElement.dataset.reservation") == salma.id


async def test_searching_highlights_matching_guests_and_enter_opens_the_first(portal):
    salma = await portal.box.guest(
        slot="19:30", customer_name="Éloïse Idrissi", customer_phone="+212 612-345678"
    )
    other = await portal.box.guest(slot="19:30", table="T2", customer_name="Omar Tazi")
    page = await tonight(portal)

    await page.keyboard.press("/")
    for wanted in ("06 1234", "+212612345678", "00212 612", "+212 (0)6 12", "eloise 5678", "٠٦١٢"):
        await page.keyboard.press("Control+a")
        await page.keyboard.insert_text(wanted)
        await page.wait_for_selector(f"{chip(salma)}.found")
        await page.wait_for_selector(f"{chip(other)}.dimmed")
    await page.keyboard.press("Control+a")
    await page.keyboard.type("idrissi elo")
    await page.wait_for_selector(f"{chip(salma)}.found")
    await page.wait_for_selector(f"{chip(other)}.dimmed")
    await scan(portal, salma)  # a row that is updated stays highlighted
    await page.wait_for_selector(f"{chip(salma)}.in.found")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#drawer h2:has-text('Éloïse')")


async def test_a_new_search_replaces_the_old_one_and_escape_ends_it(portal):
    salma = await portal.box.guest(slot="19:30", customer_name="Salma Tazi")
    omar = await portal.box.guest(slot="19:30", table="T2", customer_phone="0611137911")
    page = await tonight(portal)

    for typed, found in (("tazi", salma), ("0611137911", omar)):
        await page.keyboard.press("/")
        await page.keyboard.type(typed)
        await page.wait_for_selector(f"{chip(found)}.found")
        await page.focus(chip(found))

    await page.keyboard.press("Escape")
    await page.wait_for_selector(".dimmed", state="detached")
    assert await page.input_value("[data-board-search]") == ""


async def test_a_shortcut_works_by_its_letter_or_else_by_the_position_of_the_key(portal):
    page = await tonight(portal)

    for key, code, focused in (
        ("D", "KeyD", "date"), ("d", "KeyE", "date"), ("ي", "KeyD", "date"), ("в", "KeyD", "date"),
        ("ظ", "Slash", "search"), ("/", "Digit7", "search"), ("!", "Slash", ""), ("é", "KeyD", ""),
    ):  # fmt: skip
        assert await page.evaluate(PRESS, [key, code]) == focused, key


async def test_every_evening_can_be_opened_by_keyboard(portal):
    page = await tonight(portal)

    await page.keyboard.press("ArrowRight")
    await page.wait_for_url("**date=2026-11-22")
    await page.keyboard.press("ArrowLeft")
    await page.wait_for_url("**date=2026-11-21")
    await page.keyboard.press("d")
    assert await page.evaluate("document.activeElement.name") == "date"
    await page.keyboard.type("12122026")  # the same number with the day or the month first
    await page.keyboard.press("Enter")
    await page.wait_for_url("**date=2026-12-12*")
    await page.keyboard.press("t")
    await page.wait_for_url("**/portal/tonight")


async def test_a_board_whose_session_ended_elsewhere_shows_no_more_updates(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk()
    async with page.expect_response(lambda answer: "/live?" in answer.url):
        await page.goto("/portal/tonight")
    await page.wait_for_selector(chip(salma))

    await page.evaluate("fetch('/portal/sign-out', { method: 'POST', redirect: 'manual' })")

    await page.wait_for_url("**/portal/sign-in?next=**")


@pytest.mark.parametrize("language", ["fr", "ar"])
async def test_on_a_phone_the_board_starts_with_the_current_slot(portal, language):
    portal.box.clock.set("2026-11-22T19:00:00Z")  # a Sunday, with a brunch slot
    page = await tonight(portal, language=language, viewport=PHONE, has_touch=True)
    await page.wait_for_function("() => document.querySelector('.board-frame').scrollLeft !== 0")

    present = await page.locator("thead th[aria-current=time]").bounding_box()
    tables = await page.locator("tbody th").first.bounding_box()

    begins = present["x"] if language == "fr" else tables["x"]
    ends = tables["x"] + tables["width"] if language == "fr" else present["x"] + present["width"]
    assert begins == pytest.approx(ends, abs=2)
    assert present["x"] >= 0
    assert present["x"] + present["width"] <= PHONE["width"]


@pytest.mark.parametrize("language", ["fr", "ar"])
async def test_on_a_phone_a_party_with_the_whole_evening_stays_visible(portal, language):
    party = await portal.box.guest(slot=None)
    portal.box.clock.set("2026-11-21T22:30:00Z")
    page = await tonight(portal, language=language, viewport=PHONE, has_touch=True)
    await page.wait_for_function("() => document.querySelector('.board-frame').scrollLeft !== 0")

    name = await page.locator(f"table {chip(party)} .who").bounding_box()
    tables = await page.locator("tbody th").first.bounding_box()

    if language == "fr":
        assert name["x"] >= tables["x"] + tables["width"]
        assert name["x"] + name["width"] <= PHONE["width"]
    else:
        assert name["x"] >= 0
        assert name["x"] + name["width"] <= tables["x"]


@pytest.mark.parametrize("language", ["fr", "ar"])
async def test_the_printed_list_fits_the_width_of_a4_in_black(portal, language):
    for table, slot in (("T1", "19:30"), ("T2", None)):
        await portal.box.guest(table=table, slot=slot, customer_name=LONG, notes=LONG, guests=4)
    page = await portal.desk(language=language, viewport=A4, color_scheme="dark")

    await page.emulate_media(media="print")
    await page.goto("/portal/tonight/sheet")

    assert await page.is_visible("table.paper")
    for hidden in (".house-bar", "[data-print]", ".no-print"):
        assert not await page.is_visible(hidden)
    assert await is_within(page, A4["width"])
    left = await page.locator(".paper :is(th, td)").evaluate_all(
        "all => Math.min(...all.map((one) => one.getBoundingClientRect().left))"
    )
    assert left >= 0
    ink = await page.locator(".paper td").first.evaluate("one => getComputedStyle(one).color")
    assert ink == "rgb(0, 0, 0)"


async def test_typed_text_is_kept_when_another_button_of_the_drawer_is_pressed(portal):
    salma = await portal.box.guest(slot="19:30", notes="Près de la fenêtre")
    page = await open_drawer(portal, salma)
    await page.fill(NOTES, "sans gluten")
    await page.check("#drawer [name=vip]")

    await page.click("#drawer form[action$='/late'] button")

    await page.wait_for_selector("#drawer .chip.wait")
    assert await page.input_value(NOTES) == "sans gluten"
    assert await page.is_checked("#drawer [name=vip]")
    await save(page)
    await page.wait_for_selector("#drawer p.notes:has-text('sans gluten')")
    now = await portal.box.now_of(salma)
    assert (now.notes, bool(now.vip), now.late_at is not None) == ("sans gluten", True, True)
    assert portal.complaints == []


async def test_typed_text_stays_beside_the_changes_that_others_saved(portal):
    salma = await portal.box.guest(slot="19:30", notes="Près de la fenêtre")
    page = await open_drawer(portal, salma)
    await page.fill(NOTES, "sans gluten")
    await scan(portal, salma)
    await page.wait_for_selector(f"{chip(salma)}.in")
    await portal.box.environment.database.write(
        lambda tx: tx.execute("UPDATE reservation SET notes = 'autre', version = version + 1")
    )
    assert await page.input_value(NOTES) == "sans gluten"

    await page.click("#drawer form[action$='/late'] button")  # refused: it has changed

    await page.wait_for_selector("#drawer .problem")
    assert await page.input_value(NOTES) == "sans gluten"
    assert "autre" in await page.inner_text("#drawer form[action$='/amend'] .hint")


async def test_an_error_scrolls_into_view_from_a_form_far_below_on_a_phone(portal):
    page = await portal.desk(viewport=PHONE)
    salma = await portal.box.guest(slot="19:30")
    await page.goto("/portal/tonight")
    await look_at(page, salma)
    await page.click("#drawer summary:has-text('Corriger')")
    await page.fill("#drawer [name=customer_phone]", "12")

    await save(page)

    refusal = await page.wait_for_selector("#drawer .problem")
    assert (await refusal.bounding_box())["y"] > -1


async def test_the_page_reports_an_unreachable_box_and_continues_when_it_answers(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await tonight(portal)
    await page.context.set_offline(True)
    await page.click(chip(salma))
    await page.wait_for_selector(f"#problem {OUT}")
    await page.context.set_offline(False)
    await page.click(chip(salma))
    await page.click("#drawer summary:has-text('Corriger')")
    await page.fill(NOTES, "sans gluten")
    await page.context.set_offline(True)

    await save(page)

    await page.wait_for_selector(f"#drawer {OUT}")
    assert await page.input_value(NOTES) == "sans gluten"
    await page.context.set_offline(False)
    await save(page)
    await page.wait_for_selector("#drawer p.notes:has-text('sans gluten')")
    assert await page.locator(OUT).count() == 0


async def test_the_board_reconnects_by_itself_after_a_502(portal):
    page = await portal.desk()
    await page.route("**/live?**", lambda route: route.fulfill(status=502), times=1)
    await page.goto("/portal/tonight")
    await page.wait_for_selector("[data-live]:not([hidden])")

    await page.wait_for_selector("[data-live]", state="hidden")

    salma = await portal.box.guest(slot="19:30")
    await page.wait_for_selector(chip(salma))


async def test_a_cancellation_by_a_guest_plays_a_sound_unless_the_host_turned_it_off(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await tonight(portal)
    await page.evaluate(
        "() => { window.played = 0; window.AudioContext = class { constructor() { "
        "window.played += 1; throw new Error('no sound here'); } }; }"
    )
    portal.complaints.clear()
    database = portal.box.environment.database
    await database.write(cancel, salma.id, actor="guest")
    await page.wait_for_selector(f"#news [data-news='{salma.id}']")
    assert await page.evaluate("window.played") == 1

    await page.click("[data-sound]")
    omar = await portal.box.guest(slot="22:00")
    await page.wait_for_selector(chip(omar))
    await database.write(cancel, omar.id, actor="guest")
    await page.wait_for_selector(f"#news [data-news='{omar.id}']")
    assert await page.evaluate("window.played") == 1
