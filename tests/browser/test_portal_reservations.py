"""What a host does with reservations, in a browser and without touching the mouse."""

import pytest

from appliance.actions.ask_erasure import ask_erasure
from tests.browser import keyboard
from tests.browser.accessibility import violations
from tests.browser.phones import eventually
from tests.browser.portal_world import DESK, TABLET

SIZES = {"desk": DESK, "tablet": TABLET}


def chip(reservation):
    return f'table [data-reservation="{reservation.id}"]'


async def open_by_keyboard(page, reservation):
    """Find the guest with the search of the board and open the drawer."""
    await page.goto("/portal/tonight")
    await page.keyboard.press("/")
    await page.keyboard.type(reservation.access_code.lower())
    await page.wait_for_selector(f"{chip(reservation)}.found")
    await page.keyboard.press("Enter")
    await page.wait_for_selector("#drawer [data-detail]")


async def press(page, wanted):
    """Go with Tab to what says that, in the drawer or on the page, and press it."""
    for _ in range(120):
        text = await page.evaluate(
            "(document.activeElement.textContent || document.activeElement.value || '').trim()"
        )
        tag = await page.evaluate("document.activeElement.tagName")
        if text == wanted and tag in {"BUTTON", "SUMMARY", "A"}:
            await page.keyboard.press("Enter")
            return
        await page.keyboard.press("Tab")
    raise AssertionError(wanted)


async def go_to(page, name):
    """Go with Tab to the field of that name."""
    for _ in range(120):
        if await page.evaluate("document.activeElement.name") == name:
            return
        await page.keyboard.press("Tab")
    raise AssertionError(name)


async def type_into(page, name, text):
    await go_to(page, name)
    await page.keyboard.press("Control+a")
    await page.keyboard.type(text)


@pytest.mark.parametrize("size", SIZES)
async def test_a_request_is_accepted_and_the_strip_is_empty(portal, size):
    salma = await portal.box.guest(slot="19:30", status="requested", access_code="SVC-2345")
    page = await portal.desk(viewport=SIZES[size])
    await open_by_keyboard(page, salma)

    await press(page, "Accepter")

    await page.wait_for_selector("#drawer .chip.good:has-text('Confirmée')")
    await page.wait_for_selector("#waiting [data-reservation]", state="detached")
    assert (await portal.box.now_of(salma)).status == "confirmed"
    assert portal.complaints == []


@pytest.mark.parametrize("size", SIZES)
async def test_payments_are_recorded_part_and_rest(portal, size):
    salma = await portal.box.guest(slot="19:30", status="pending", access_code="SVC-2345")
    page = await portal.desk(viewport=SIZES[size])
    await open_by_keyboard(page, salma)

    await type_into(page, "amount", "200")
    await go_to(page, "complete")
    await page.keyboard.press("Space")
    await press(page, "Enregistrer")
    await page.wait_for_selector("#drawer b:has-text('200 MAD')")
    assert (await portal.box.now_of(salma)).status == "partial"
    await type_into(page, "amount", "300")
    await press(page, "Enregistrer")
    await page.wait_for_selector("#drawer b:has-text('500 MAD')")

    assert (await portal.box.now_of(salma)).status == "confirmed"


@pytest.mark.parametrize("size", SIZES)
async def test_a_party_is_checked_in_and_taken_back_from_the_board(portal, size):
    salma = await portal.box.guest(slot="19:30", guests=4, access_code="SVC-2345")
    page = await portal.desk("door", viewport=SIZES[size])
    await open_by_keyboard(page, salma)

    await type_into(page, "arrivals", "3")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(f"{chip(salma)}.partly")
    assert (await portal.box.now_of(salma)).arrived == 3

    await press(page, "Annuler l’entrée")
    await type_into(page, "reason", "autre groupe")
    await page.keyboard.press("Enter")
    await page.wait_for_selector(f"{chip(salma)}:not(.partly)")
    assert (await portal.box.now_of(salma)).arrived == 0


@pytest.mark.parametrize("size", SIZES)
async def test_a_party_moves_to_another_table_and_the_board_follows(portal, size):
    salma = await portal.box.guest(slot="19:30", access_code="SVC-2345")
    page = await portal.desk(viewport=SIZES[size])
    await open_by_keyboard(page, salma)

    await press(page, "Déplacer vers une autre table")
    await go_to(page, "table")
    await page.keyboard.press("ArrowDown")
    await press(page, "Déplacer")

    await page.wait_for_selector("#drawer .big:has-text('T3')")
    await page.wait_for_selector(f"tr:has(th:has-text('T3')) {chip(salma)[6:]}")
    await page.wait_for_selector(f"tr:has(th:has-text('T1')) {chip(salma)[6:]}", state="detached")


@pytest.mark.parametrize("size", SIZES)
async def test_who_asks_to_be_forgotten_is_found_and_erased(portal, size):
    salma = await portal.box.guest(slot="19:30", customer_name="Salma Idrissi")
    await portal.box.environment.database.write(ask_erasure, salma.id)
    page = await portal.desk("manager", viewport=SIZES[size])
    await page.goto("/portal/reservations")
    assert await violations(page) == []

    await keyboard.reach(page, page.locator("section[aria-labelledby=erasures-title] a"))
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/portal/reservations/{salma.id}#data")
    await keyboard.press(page, "Effacer les données de ce client")
    await page.evaluate("scrollTo(0, 0)")  # half of a link below the bar is no small link
    assert await violations(page) == []
    await keyboard.press(page, "Oui, effacer")
    await page.wait_for_selector("main h1:has-text('Nom effacé')")

    assert await violations(page) == []
    assert "Salma" not in await page.inner_text("main")
    assert (await portal.box.now_of(salma)).customer_name is None
    assert portal.complaints == []


async def test_what_a_second_host_typed_is_not_lost(portal):
    salma = await portal.box.guest(slot="19:30", access_code="SVC-2345")
    first, second = await portal.desk(), await portal.desk()
    for page in (first, second):
        await open_by_keyboard(page, salma)
        await press(page, "Corriger le nombre, le contact, les notes")
    await second.fill("#drawer [name=notes]", "sans gluten")
    await first.fill("#drawer [name=notes]", "près de la scène")
    await first.click("#drawer button:has-text('Enregistrer')")
    await first.wait_for_selector("#drawer .notes:has-text('scène')")

    await second.click("#drawer button:has-text('Enregistrer')")

    await second.wait_for_selector("#drawer .problem")
    assert await second.input_value("#drawer [name=notes]") == "sans gluten"
    assert await second.is_visible("#drawer .hint:has-text('près de la scène')")


async def test_a_reservation_is_written_down_from_an_empty_cell_by_keyboard(portal):
    page = await portal.desk()
    await page.goto("/portal/tonight")
    await page.keyboard.press("n")
    await page.wait_for_url("**/portal/reservations/new*")

    await page.focus("[name=slot]")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Tab")
    await type_into(page, "guests", "4")
    await page.keyboard.press("Tab")
    await page.wait_for_function("document.activeElement.name === 'table'")
    await page.keyboard.press("ArrowDown")
    await type_into(page, "customer_name", "Karim Alaoui")
    await press(page, "Retenir la table")

    await page.wait_for_selector(".note")
    [(name, slot, guests)] = await portal.box.rows(
        "SELECT customer_name, slot, guests FROM reservation"
    )
    assert (name, slot, guests) == ("Karim Alaoui", "22:00", 4)
    assert portal.complaints == []


async def test_the_free_tables_follow_what_is_chosen_and_the_name_stays(portal):
    await portal.box.guest(slot="19:30")
    page = await portal.desk()
    await page.goto("/portal/reservations/new?date=2026-11-21&slot=19:30")
    await page.fill("[name=customer_name]", "Karim")
    offered = "[...document.querySelectorAll('#new-table option')].map((o) => o.text.slice(0, 2))"
    assert "T1" not in await page.evaluate(offered)

    await page.select_option("[name=slot]", "22:00")

    async def has_t1():
        return "T1" in await page.evaluate(offered)

    await eventually(has_t1)
    assert await page.input_value("[name=customer_name]") == "Karim"
    assert await page.input_value("[name=slot]") == "22:00"


async def test_without_a_script_everything_still_works(portal):
    salma = await portal.box.guest(slot="19:30", access_code="SVC-2345")
    page = await portal.desk(java_script_enabled=False)
    await page.goto("/portal/tonight")

    await page.click(chip(salma))
    await page.click("button:has-text('Faire entrer')")
    assert "2/2" in await page.inner_text(".facts-line")
    await page.goto("/portal/reservations/new")
    await page.fill("[name=guests]", "3")
    await page.click("button:has-text('Voir les tables libres')")
    assert await page.input_value("[name=guests]") == "3"


@pytest.mark.parametrize(("language", "scheme"), [("fr", "light"), ("ar", "dark")])
@pytest.mark.parametrize("size", SIZES)
async def test_axe_finds_nothing_on_the_list_the_form_and_one_reservation(
    portal, language, scheme, size
):
    salma = await portal.box.guest(slot="19:30", status="pending", source="partner",
                                   body_mismatches=1, vip=1)  # fmt: skip
    await portal.box.guest(table="T2", status="requested")
    page = await portal.desk(language=language, color_scheme=scheme, viewport=SIZES[size])

    for path in (
        "/portal/reservations",
        "/portal/reservations?q=nobody",
        "/portal/reservations/new?guests=99",
        f"/portal/reservations/{salma.id}",
    ):
        await page.goto(path)
        assert await violations(page) == [], path
        width = await page.evaluate("document.documentElement.scrollWidth")
        assert width == SIZES[size]["width"], path
    assert portal.complaints == []
