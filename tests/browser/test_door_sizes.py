"""Small phones, and phones that lie on their side: what staff need is in sight and in reach."""

import pytest

SIZES = {
    "small": {"width": 360, "height": 640},
    "on its side": {"width": 844, "height": 390},
    "small on its side": {"width": 640, "height": 360},
}
DENIED = ["--use-fake-device-for-media-stream", "--deny-permission-prompts"]
OUT_OF_REACH = """ids => ids.filter((id) => {
  const there = document.getElementById(id);
  const { left, right, top, bottom } = there.getBoundingClientRect();
  const isIn = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
  const found = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return !isIn || !(there.contains(found) || found?.contains(there));
})"""


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
async def test_the_camera_is_started_and_started_again(door, size):
    phone = await door.phone(viewport=size, arguments=DENIED)

    await phone.page.click("#start", timeout=5000)
    await phone.page.wait_for_selector("#ready[data-fault=refused]")

    await phone.page.click("#start", timeout=5000)
    await phone.page.click("#photo-label", timeout=5000, trial=True)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("locale", ["fr-MA", "ar-MA"])
async def test_a_green_verdict_shows_where_to_go_and_the_way_back(door, size, locale):
    guest = await door.guest(guests=6, slot="20:00", notes="VIP, gâteau à 23 h, loin de la piste")
    text = await door.pass_of(guest)
    phone = await door.phone(viewport=size, locale=locale)
    await door.stop()
    await phone.is_down()

    assert await phone.scan(text) == "checked_in"

    needed = ["shape", "verdict-word", "verdict-table", "verdict-sentence", "undo", "next"]
    assert await phone.page.evaluate(OUT_OF_REACH, needed) == []
    assert await phone.page.evaluate("document.documentElement.scrollWidth") == size["width"]


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
async def test_an_amber_verdict_is_set_aside_with_a_reason(door, size):
    guest = await door.guest(status="pending", notes="Près de la fenêtre, loin de la piste")
    phone = await door.phone(viewport=size)
    assert await phone.scan(await door.pass_of(guest)) == "payment_due"
    assert await phone.page.evaluate(OUT_OF_REACH, ["override", "next"]) == []

    await phone.page.click("#override", timeout=5000)
    assert await phone.page.evaluate(OUT_OF_REACH, ["reason", "next"]) == []
    await phone.page.fill("#reason", "Connu")
    await phone.page.click("#reason-form button", timeout=5000)

    await phone.page.wait_for_selector("#verdict[data-result=checked_in]")


@pytest.mark.parametrize("locale", ["fr-MA", "ar-MA"])
async def test_how_many_are_here_is_in_sight_beside_a_note(door, locale):
    guest = await door.guest(guests=4, notes="Près de la fenêtre, gâteau d’anniversaire à 22 h")
    phone = await door.phone(viewport=SIZES["small"], locale=locale)

    assert await phone.scan(await door.pass_of(guest)) == "checked_in"

    assert await phone.page.evaluate(OUT_OF_REACH, ["shape", "verdict-stepper", "next"]) == []
    assert await phone.page.evaluate("document.documentElement.scrollWidth") == 360


async def test_the_question_before_unpairing_is_in_sight(door):
    phone = await door.phone(viewport=SIZES["small"])

    await phone.page.click("#open-menu")
    await phone.page.click("#unpair")

    assert await phone.page.evaluate(OUT_OF_REACH, ["unpair-yes"]) == []
