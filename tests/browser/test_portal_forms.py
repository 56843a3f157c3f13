"""Nothing typed in the portal is lost, and an unresponsive box is reported."""

import asyncio
import re

import pytest

from tests.app.portal.people import PASSWORD
from tests.builders import table_id
from tests.waiting import until

NEW = "/portal/reservations/new"
FORMS = (
    NEW, "/portal/venue/rules", "/portal/people", "/portal/door", "/portal/venue",
    "/portal/integrations/keys/new", "/portal/venue/closings", "/portal/venue/slots",
)  # fmt: skip
KEPT = (("/portal/venue/rules", "dressCode"), ("/portal/venue/rules", "phone"),
        (f"{NEW}?date=2026-11-28", "customer_name"), ("/portal/venue/slots", "name"))  # fmt: skip
OUT, SLOW = "[data-out-of-reach]", "[data-waiting]:not([hidden])"
TYPED = {"customer_name": "Karim Alaoui", "customer_phone": "0612345678", "notes": "Anniversaire"}


async def write_down(page, date="2026-11-28", slot="22:00"):
    """Fill in a new reservation with another date, time and table than the defaults."""
    await page.fill("[name=date]", date)
    await page.wait_for_selector(f"#long-date:has-text('{int(date[-2:])}')")
    await page.select_option("[name=slot]", slot)
    await page.fill("[name=guests]", "3")
    await page.select_option("[name=table]", table_id("T4"))
    for name, text in TYPED.items():
        await page.fill(f"[name={name}]", text)


async def has_everything(page, date="2026-11-28", slot="22:00"):
    expected = TYPED | {"date": date, "slot": slot, "guests": "3", "table": table_id("T4")}

    async def is_there():
        found = {name: await page.input_value(f"[name={name}]") for name in expected}
        return found == expected

    await until(is_there)
    label = page.locator("[name=table] option:checked").get_by_text(re.compile("^T4 "))
    await label.wait_for(state="attached")


async def made(portal):
    return await portal.box.rows("SELECT customer_name, table_id, date, slot FROM reservation")


async def end_sessions(portal):
    await portal.box.environment.database.write(lambda tx: tx.execute("DELETE FROM session"))


async def sign_in_again(page):
    await page.wait_for_url("**/portal/sign-in?next=**")
    await page.fill("[name=name]", "Yasmine 1")
    await page.fill("[name=password]", PASSWORD)
    await page.keyboard.press("Enter")


async def test_a_form_that_does_not_reach_the_box_keeps_its_input(portal):
    page = await portal.desk()
    for path in FORMS:
        await page.goto(path)
        field = page.locator("main form[method=post] :is(input[name=name], [name=customer_name], "
                             "[name=list], [name=reason])").first  # fmt: skip
        await field.fill("Karim")
        form = field.locator("xpath=ancestor::form")
        await form.evaluate("form => { form.noValidate = true }")
        await page.route("**", lambda route: route.abort())

        await form.locator("button:not([type=button])").first.click()

        await page.wait_for_selector(OUT)
        assert await field.input_value() == "Karim"
        assert page.url.endswith(path)
        await page.unroute("**")


async def test_a_phone_booking_is_saved_once_the_box_is_back(portal):
    page = await portal.desk("host")
    await page.goto(NEW)
    await write_down(page)
    await page.route("**/reservations/new", lambda route: route.abort())
    await page.keyboard.press("Control+Home")
    await page.click("text=Réserver la table")
    await page.wait_for_selector(OUT)

    await page.unroute("**/reservations/new")
    await page.click("text=Réserver la table")
    await page.wait_for_url(re.compile("/portal/reservations/[0-9a-f-]{36}"))

    assert await made(portal) == [("Karim Alaoui", table_id("T4"), "2026-11-28", "22:00")]
    await page.goto(NEW)
    assert await page.input_value("[name=customer_name]") == ""


@pytest.mark.parametrize("what", ["form", "drawer", "action"])
async def test_a_hanging_box_is_reported_and_its_late_answer_still_counts(portal, what):
    guest = await portal.box.guest(slot="19:30")
    page = await portal.desk("host")
    await page.goto(f"{NEW}?date=2026-11-28" if what == "form" else "/portal/tonight")
    chip = f"table [data-reservation='{guest.id}']"
    if what == "action":
        await page.click(chip)
        await page.wait_for_selector("#drawer form")
    answers = asyncio.Event()

    async def hold(route):
        await answers.wait()
        await route.continue_()

    await page.route("**/reservations/**", hold)

    if what == "form":
        await page.select_option("[name=table]", table_id("T4"))
        await page.fill("[name=customer_name]", "Karim")
    await page.click({"form": "text=Réserver la table", "drawer": chip,
                      "action": "#drawer form[action$='/late'] button"}[what])  # fmt: skip

    await page.wait_for_selector("body.waits")
    await page.wait_for_selector(SLOW)
    answers.set()
    await page.wait_for_selector({"form": ".detail-name:has-text('Karim')",
                                  "drawer": "#drawer [data-detail]",
                                  "action": "#drawer .chip.wait"}[what])  # fmt: skip
    assert await page.locator(f"{OUT}, {SLOW}, body.waits").count() == 0
    assert portal.complaints == []


async def test_nothing_typed_is_lost_if_the_session_ends_while_a_reservation_is_entered(portal):
    page = await portal.desk("host")
    await portal.set_passwords()
    await page.goto(f"{NEW}?date=2026-11-22&slot=19:30")
    async with page.expect_response("**/callers?customer_phone=*"):
        await write_down(page)
    await end_sessions(portal)

    await page.click("text=Réserver la table")
    await sign_in_again(page)

    await page.wait_for_selector("form .draft")
    await has_everything(page)
    await page.click("text=Réserver la table")
    await page.wait_for_url(re.compile("/portal/reservations/[0-9a-f-]{36}"))
    assert await made(portal) == [("Karim Alaoui", table_id("T4"), "2026-11-28", "22:00")]


async def test_typed_text_is_restored_on_return_until_it_is_discarded(portal):
    page = await portal.desk()
    for path, field in KEPT:
        await page.goto(path)
        before = await page.input_value(f"[name={field}]")
        await page.fill(f"[name={field}]", "Tenue 2")
        for _ in range(2):
            await page.goto("/portal/tonight")
            await page.goto(path)
            assert await page.input_value(f"[name={field}]") == "Tenue 2"

        await page.click(".draft button")
        assert await page.input_value(f"[name={field}]") == before
        await page.reload()
        assert await page.input_value(f"[name={field}]") == before
    assert portal.complaints == []


async def test_a_draft_is_not_shown_to_another_person(portal):
    page = await portal.desk("host")
    await portal.set_passwords()
    await page.goto(NEW)
    await page.fill("[name=customer_name]", "Karim")
    other = await portal.desk("host")
    cookies = await other.context.cookies()
    await page.context.clear_cookies()
    await page.context.add_cookies(cookies)

    await page.goto(NEW)

    assert await page.input_value("[name=customer_name]") == ""
    assert "Karim" not in await page.evaluate("JSON.stringify({...sessionStorage})")


async def test_a_pasted_list_can_be_corrected_after_the_preview_and_after_going_back(portal):
    page = await portal.desk("manager")
    await page.goto("/portal/venue")
    await page.fill("textarea[name=list]", "20 tables de 4 en terrasse")
    await page.click("form[action$=preview] button:not([type=button])")
    await page.wait_for_selector("#found-title")

    await page.go_back()
    await page.wait_for_selector("#tables-title")
    assert await page.input_value("textarea[name=list]") == "20 tables de 4 en terrasse"
    await page.click("form[action$=preview] button:not([type=button])")
    await page.click("main a:text-is('Ne pas ajouter')")
    await page.wait_for_selector("#tables-title")
    assert await page.input_value("textarea[name=list]") == "20 tables de 4 en terrasse"
    await page.click("form[action$=preview] button:not([type=button])")
    await page.click("summary:has-text('Corriger la liste')")
    await page.fill("textarea[name=list]", "A1-A20;Terrasse 1;1;4;terrace")
    await page.click("form[action$=preview] button:not([type=button])")
    await page.wait_for_selector("#found-title:has-text('20')")
    await page.click("form[action$='/venue/tables'] button")

    await page.wait_for_selector(".note")
    assert await page.input_value("textarea[name=list]") == ""
    assert await portal.box.rows("SELECT count(*) FROM venue_table WHERE type = 'terrace'") == [
        (20,)
    ]
    assert portal.complaints == []


async def test_every_form_keeps_typed_text_except_codes(portal):
    page = await portal.desk()
    await page.goto("/portal/people")
    await page.fill("form[action='/portal/people'] [name=name]", "Yassine")
    await page.goto("/portal/tonight")

    await page.goto("/portal/people")

    assert await page.input_value("form[action='/portal/people'] [name=name]") == "Yassine"
    await page.goto("/portal/account")
    kept = await page.evaluate("JSON.stringify(sessionStorage)")
    assert "Yassine" in kept
    form = '<form method="post"><input name="code" autocomplete="one-time-code"></form>'
    await page.eval_on_selector("main", "(main, form) => (main.innerHTML += form)", form)
    await page.fill("[name=code]", "123456")
    assert "123456" not in await page.evaluate("JSON.stringify(sessionStorage)")
