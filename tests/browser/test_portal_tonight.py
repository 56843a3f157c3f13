"""The evening board as a host sees it: live, by keyboard, on a tablet and at a desk."""

import pytest

from appliance.actions.cancel import cancel
from appliance.actions.check_in import check_in
from appliance.actions.issue_terminal import issue_terminal
from appliance.model.scan import Reading, Scan
from appliance.store.terminals import get_terminal
from tests.browser.accessibility import violations
from tests.browser.portal_world import DESK, TABLET

SIZES = {"desk": DESK, "tablet": TABLET}


async def scan(portal, reservation):
    """The guest's pass is read at the door."""
    terminal_id, _ = await portal.box.environment.database.write(issue_terminal, "Porte 1")

    def read(tx):
        reading = Reading("list", (reservation.id,))
        return check_in(tx, get_terminal(tx, terminal_id), Scan(tx.new_id(), reading), 24 * 60)

    assert (await portal.box.environment.database.write(read)).verdict.admitted


def chip(reservation):
    return f'[data-reservation="{reservation.id}"]'


@pytest.mark.parametrize("size", SIZES)
async def test_who_comes_in_turns_green_while_the_host_looks_on(portal, size):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk(viewport=SIZES[size])
    await page.goto("/portal/tonight")
    assert "0 / 2" in await page.inner_text("#totals")

    await scan(portal, salma)

    await page.wait_for_selector(f"{chip(salma)}.in")
    assert "2 / 2" in await page.inner_text("#totals")
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width == SIZES[size]["width"]
    assert portal.complaints == []


async def test_a_chip_that_came_in_later_opens_the_drawer_too(portal):
    page = await portal.desk()
    await page.goto("/portal/tonight")
    salma = await portal.box.guest(slot="19:30")

    await page.click(chip(salma))

    await page.wait_for_selector("#drawer [data-detail]")
    assert page.url.endswith("/portal/tonight")


async def test_a_party_that_is_cancelled_leaves_its_cell(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto("/portal/tonight")
    await page.wait_for_selector(chip(salma))

    await portal.box.environment.database.write(cancel, salma.id, actor="box")

    await page.wait_for_selector(chip(salma), state="detached")


async def test_the_drawer_opens_keeps_the_focus_and_gives_it_back_by_keyboard_alone(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto("/portal/tonight")
    await page.focus(chip(salma))

    await page.keyboard.press("Enter")
    await page.wait_for_selector("#drawer [data-detail]")
    inside = "document.querySelector('#drawer').contains(document.activeElement)"
    assert await page.evaluate(inside)
    seen = set()
    for _ in range(30):
        await page.keyboard.press("Tab")
        assert await page.evaluate(inside)
        seen.add(await page.evaluate("document.activeElement.outerHTML"))
    for _ in range(30):
        await page.keyboard.press("Shift+Tab")
        assert await page.evaluate(inside)
    assert len(seen) > 5

    await page.keyboard.press("Escape")
    assert await page.inner_html("#drawer") == ""
    focused = await page.evaluate("document.activeElement.dataset.reservation")
    assert focused == salma.id


async def test_the_drawer_follows_what_others_do_unless_somebody_types(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto("/portal/tonight")
    await page.click(chip(salma))
    await page.wait_for_selector("#drawer [data-detail]")

    await scan(portal, salma)
    await page.wait_for_selector("#drawer .chip.good:has-text('2/2')")

    await page.click("#drawer summary:has-text('Corriger')")
    await page.fill("#drawer [name=notes]", "sans gluten")
    version = await page.get_attribute("[data-detail]", "data-version")
    await portal.box.environment.database.write(
        lambda tx: tx.execute("UPDATE reservation SET notes = 'autre', version = version + 1")
    )
    await portal.box.environment.database.write(cancel, salma.id, actor="box")
    await page.wait_for_selector(chip(salma), state="detached")
    assert await page.input_value("#drawer [name=notes]") == "sans gluten"
    assert await page.get_attribute("[data-detail]", "data-version") == version


async def test_searching_marks_who_fits_and_enter_opens_the_first(portal):
    salma = await portal.box.guest(slot="19:30", customer_name="Éloïse Idrissi")
    other = await portal.box.guest(slot="19:30", table="T2", customer_name="Omar Tazi")
    page = await portal.desk()
    await page.goto("/portal/tonight")

    await page.keyboard.press("/")
    await page.keyboard.type("eloise")
    await page.wait_for_selector(f"{chip(salma)}.found")
    await page.wait_for_selector(f"{chip(other)}.dimmed")
    await scan(portal, salma)  # a row that changes meanwhile stays marked
    await page.wait_for_selector(f"{chip(salma)}.in.found")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#drawer h2:has-text('Éloïse')")
    await page.keyboard.press("Escape")

    await page.fill("[data-board-search]", "personne de ce nom")
    assert await page.inner_text("[data-search-none]") == "Personne ici ne correspond."


async def test_any_evening_is_reached_by_keyboard_alone(portal):
    page = await portal.desk()
    await page.goto("/portal/tonight")

    await page.keyboard.press("ArrowRight")
    await page.wait_for_url("**date=2026-11-22")
    assert await page.inner_text("h1") == "Demain"
    await page.keyboard.press("ArrowLeft")
    await page.wait_for_url("**date=2026-11-21")
    await page.keyboard.press("d")
    assert await page.evaluate("document.activeElement.name") == "date"
    await page.keyboard.type("12122026")  # whichever comes first, day or month
    await page.keyboard.press("Enter")
    await page.wait_for_url("**date=2026-12-12*")
    await page.keyboard.press("t")
    await page.wait_for_url("**/portal/tonight")


async def test_a_session_that_ended_elsewhere_shows_nothing_more(portal):
    salma = await portal.box.guest(slot="19:30")
    page = await portal.desk()
    async with page.expect_response(lambda answer: "/tonight/events" in answer.url):
        await page.goto("/portal/tonight")
    await page.wait_for_selector(chip(salma))

    await page.evaluate("fetch('/portal/sign-out', { method: 'POST', redirect: 'manual' })")

    await page.wait_for_url("**/portal/sign-in?next=**")


@pytest.mark.parametrize(("language", "scheme"), [("fr", "light"), ("ar", "dark"), ("en", "dark")])
@pytest.mark.parametrize("size", SIZES)
async def test_axe_finds_nothing_on_the_board_the_drawer_and_the_sheet(
    portal, language, scheme, size
):
    salma = await portal.box.guest(slot="19:30", vip=1, status="requested", notes="Gâteau à 23 h")
    await portal.box.guest(slot=None, table="T2", arrived=1)
    await portal.box.guest(slot="22:00", table="T3", late_at=1, source="partner")
    page = await portal.desk(language=language, color_scheme=scheme, viewport=SIZES[size])

    await page.goto("/portal/tonight")
    assert await violations(page) == []
    await page.click(f"table {chip(salma)}")
    await page.wait_for_selector("#drawer [data-detail]")
    for summary in await page.query_selector_all("#drawer summary"):
        await summary.click()
    assert await violations(page) == []
    await page.goto("/portal/tonight/sheet")
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth") == SIZES[size]["width"]
    assert portal.complaints == []


async def test_on_paper_only_the_evening_remains(portal):
    await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto("/portal/tonight/sheet")

    await page.emulate_media(media="print")

    assert await page.is_visible("table.paper")
    for hidden in (".house-bar", "[data-print]", ".no-print"):
        assert not await page.is_visible(hidden)
