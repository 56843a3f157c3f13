"""Rows of the evening board come and go with who sits there, at tables that are not open too."""

from appliance.actions.amend_reservation import move_to_table
from tests.browser.test_portal_tonight import chip
from tests.builders import table_id


async def move(portal, reservation, number):
    now = await portal.box.now_of(reservation)
    await portal.box.environment.database.write(
        move_to_table, now.id, now.version, table_id(number), actor="box"
    )


async def shown(page):
    return await page.eval_on_selector_all(
        "[data-board] tbody tr th b", "all => all.map(b => b.textContent)"
    )


async def test_a_party_that_moves_to_a_closed_table_gets_its_row_in_the_venues_order(portal):
    salma = await portal.box.guest(slot="19:30")
    await portal.box.environment.database.write(
        lambda tx: tx.execute("UPDATE venue_table SET bookable = 0 WHERE number = 'T3'")
    )
    page = await portal.desk()
    await page.goto("/portal/tonight")
    assert await shown(page) == ["T1", "T2", "T4", "T5"]

    await move(portal, salma, "T3")

    await page.wait_for_selector(f"#t-{table_id('T3')} {chip(salma)}")
    assert await shown(page) == ["T1", "T2", "T3", "T4", "T5"]
    assert await page.locator(f"table {chip(salma)}").count() == 1

    await move(portal, salma, "T2")

    await page.wait_for_selector(f"#t-{table_id('T2')} {chip(salma)}")
    assert await shown(page) == ["T1", "T2", "T4", "T5"]
    assert portal.complaints == []


async def test_the_board_counts_reservations_and_calls_them_so(portal):
    for slot in ("19:30", "22:00"):
        await portal.box.guest(slot=slot)
    page = await portal.desk()
    await page.goto("/portal/tonight")

    assert "0 / 2 réservations" in await page.inner_text("#totals")
