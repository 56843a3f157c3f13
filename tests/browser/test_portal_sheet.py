"""The evening on paper: whole at the width of an A4 sheet, black on white."""

import pytest

from tests.browser.keyboard import is_within

A4 = {"width": 703, "height": 1032}  # between margins of 12 mm
LONG = "Donaudampfschifffahrtsgesellschaftskapitän Müller-Lüdenscheidt"
NOTES = "Allergie aux noix ; une poussette ; près de la fenêtre, loin de la musique"


@pytest.mark.parametrize("language", ["fr", "ar"])
async def test_nothing_is_cut_off_at_the_edge_of_the_paper(portal, language):
    for table, slot in (("T1", "19:30"), ("T2", None)):
        await portal.box.guest(table=table, slot=slot, customer_name=LONG, notes=NOTES, guests=4,
                               access_code=f"SVC-23{table}", status="pending")  # fmt: skip
    page = await portal.desk(language=language, viewport=A4, color_scheme="dark")

    await page.emulate_media(media="print")
    await page.goto("/portal/tonight/sheet")

    assert await is_within(page, A4["width"])
    left = await page.locator(".paper :is(th, td)").evaluate_all(
        "all => Math.min(...all.map((one) => one.getBoundingClientRect().left))"
    )
    assert left >= 0
    ink = await page.locator(".paper td").first.evaluate("one => getComputedStyle(one).color")
    assert ink == "rgb(0, 0, 0)"
