"""The rooms of a venue on a phone: what can be changed is in sight, tools come as they are read."""

import pytest

from tests.browser.accessibility import violations
from tests.browser.phones import PHONE

IN_SIGHT = """(one) => {
  const { left, right } = one.getBoundingClientRect();
  return left >= 0 && right <= innerWidth;
}"""
AS_READ = """() => {
  const top = (one) => one.getBoundingClientRect().top;
  return [...document.querySelectorAll(".board-tools :is(a, button, input)")]
    .filter((one) => one.offsetParent).map((one) => Math.round(top(one)));
}"""


@pytest.mark.parametrize(
    ("path", "words", "field"),
    [("venue", "T1", "number"), ("venue/slots", "19:30", "start")],
)
async def test_a_table_and_a_slot_are_opened_without_looking_aside(portal, path, words, field):
    page = await portal.desk(role="manager", viewport=PHONE)
    await page.goto(f"/portal/{path}")
    link = page.locator(".ledger tbody th a").filter(has_text=words).first

    assert await link.evaluate(IN_SIGHT)
    assert await violations(page) == []
    await link.click()
    await page.wait_for_url(f"**/{path.partition('/')[0]}/*/*")

    assert (await page.input_value(f"[name={field}]")).startswith(words)
    assert portal.complaints == []


@pytest.mark.parametrize("language", ["fr", "ar"])
async def test_the_keyboard_goes_down_the_tools_of_the_board_as_they_are_read(portal, language):
    page = await portal.desk(language=language, viewport=PHONE)
    await page.goto("/portal/tonight")

    rows = await page.evaluate(AS_READ)

    assert rows == sorted(rows)
    assert len(set(rows)) > 1


async def test_a_finger_that_scrolls_the_tables_leaves_the_page_as_it_is(portal):
    page = await portal.desk(role="manager", viewport=PHONE, has_touch=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    await page.goto("/portal/venue")
    await page.evaluate("window.same = true")
    before = len(asked)

    for kind in ("pointerdown", "pointercancel", "pointerdown", "pointerup"):
        await page.locator(".ledger tbody tr td").nth(3).dispatch_event(kind, {"bubbles": True})
    await page.evaluate("fetch('/health').then((answer) => answer.text())")

    assert asked[before:] == ["GET"]
    assert await page.evaluate("window.same")
