"""The work of a host during an evening, at three screen sizes, with counted taps and keys."""

import pytest

from tests.browser.accessibility import violations
from tests.browser.phones import PHONE
from tests.browser.portal_world import DESK, TABLET
from tests.builders import table_id

SIZES = pytest.mark.parametrize("size", [PHONE, TABLET, DESK], ids=lambda size: str(size["width"]))
PACE_MS = 550
TAP_S, KEY_S, THOUGHT_S = 1.3, 0.2, 1.2  # seconds for each action in the keystroke-level model


class Host:
    """A host who uses the board, with counters of taps and keys."""

    def __init__(self, page):
        self.page = page
        self.taps = self.keys = 0

    async def start_over(self):
        """Close the drawer, and count from here on."""
        await self.page.wait_for_timeout(PACE_MS)
        await self.page.keyboard.press("Escape")
        self.taps = self.keys = 0

    async def tap(self, selector):
        if self.taps:  # at a hand's pace: the second click of a double click is ignored
            await self.page.wait_for_timeout(PACE_MS)
        self.taps += 1
        await self.page.click(selector)

    async def type(self, text):
        self.keys += len(text)
        await self.page.keyboard.type(text)

    async def press(self, key, times=1):
        for _ in range(times):
            self.keys += 1
            await self.page.keyboard.press(key)

    @property
    def seconds(self):
        """Return the seconds of the keystroke-level model, with one thought for each tap."""
        return self.taps * (TAP_S + THOUGHT_S) + self.keys * KEY_S


async def at_the_board(portal, size=DESK, **options):
    page = await portal.desk("host", viewport=size, **options)
    await page.goto("/portal/tonight")
    return Host(page)


def chip(reservation):
    return f'td [data-reservation="{reservation.id}"]'


def free(number, slot="19:30"):
    return f"#t-{table_id(number)} .free[href*='{slot}']"


def action(what):
    return f"#drawer form[action$='/{what}'] button"


async def becomes(portal, reservation, selector, page):
    await page.wait_for_selector(selector)
    return await portal.box.now_of(reservation)


@SIZES
async def test_left_and_no_show_take_two_taps_each_and_can_be_undone(portal, clock, size):
    salma = await portal.box.guest(slot="19:30", arrived=2, checked_in_at=1)
    omar = await portal.box.guest(slot="19:30", table="T3")
    clock.advance(3600)
    host = await at_the_board(portal, size)

    for party, what, ended in ((salma, "left", "completed"), (omar, "no-show", "cancelled")):
        await host.tap(chip(party))
        await host.tap(action(what))
        now = await becomes(portal, party, action("take-back"), host.page)

        assert (now.status, now.no_show, host.taps) == (ended, what == "no-show", 2)
        await host.page.wait_for_selector(f"tr:has({chip(party)}.gone) .free")
        assert await violations(host.page) == []
        await host.tap(action("take-back"))
        assert (await becomes(portal, party, action(what), host.page)).status == "confirmed"
        await host.start_over()
    assert portal.complaints == []


@SIZES
async def test_a_walk_in_takes_two_taps_and_a_phone_booking_nine_seconds(portal, size):
    host = await at_the_board(portal, size)

    await host.tap(free("T2"))
    await host.tap(".walk-in [name=guests][value='3']")
    await host.page.wait_for_selector(action("left"))

    [found] = await portal.box.rows("SELECT guests, arrived, walk_in, slot FROM reservation")
    assert (found, host.taps) == ((3, 3, 1, "19:30"), 2)
    await host.page.wait_for_selector(f"#t-{table_id('T2')} .guest.in")
    assert await violations(host.page) == []

    await host.start_over()
    await host.tap(free("T4"))
    await host.page.wait_for_selector("#drawer [name=customer_name]")
    if size is not DESK:
        await host.page.focus("#drawer [name=customer_name]")
    await host.type("Salma Tazi")
    await host.press("Tab")
    await host.type("0612345678")
    await host.press("Enter")
    await host.page.wait_for_url("**/portal/reservations/*")

    booked = "SELECT customer_name, customer_phone, slot FROM reservation WHERE NOT walk_in"
    assert await portal.box.rows(booked) == [("Salma Tazi", "0612345678", "19:30")]
    assert host.seconds <= 9
    assert portal.complaints == []


async def test_a_walk_in_larger_than_the_table_can_be_confirmed_without_a_mouse(portal):
    host = await at_the_board(portal)
    await host.page.focus(free("T2"))
    await host.press("Enter")
    await host.page.focus(".walk-in [name=guests][value='6']")

    await host.press("Enter")
    await host.page.wait_for_selector(".walk-in [name=sure]", state="attached")
    assert await violations(host.page) == []
    await host.page.focus(".walk-in .main-action")
    await host.press("Enter")
    await host.page.wait_for_selector(action("left"))
    assert await portal.box.rows("SELECT guests, arrived FROM reservation") == [(6, 6)]


async def test_escape_returns_the_focus_to_the_plus_button(portal):
    host = await at_the_board(portal)
    await host.tap(free("T2"))
    await host.page.wait_for_selector("#drawer [name=customer_name]:focus")

    await host.press("Escape")

    assert await host.page.inner_html("#drawer") == ""
    assert await host.page.eval_on_selector(free("T2"), "one => one === document.activeElement")


async def test_a_party_becomes_late_without_a_reload_and_late_parties_can_be_filtered(
    portal, clock
):
    database = portal.box.environment.database
    rule = """UPDATE venue SET policies = '{"lateArrivalMinutes": 20}'"""
    await database.write(lambda tx: tx.execute(rule))
    salma = await portal.box.guest(slot="19:30")
    omar = await portal.box.guest(slot="22:00", table="T2", customer_name="Omar")
    clock.advance(49 * 60)
    page = await portal.desk("host")
    await page.clock.install()
    await page.goto("/portal/tonight")
    assert await page.locator(".overdue, [data-late-filter]:visible").count() == 0

    await page.clock.fast_forward(70_000)

    await page.wait_for_selector(f"{chip(salma)}.overdue")
    assert await page.inner_text(f"{chip(salma)} [data-late-by]") == "20 min"
    assert await page.inner_text("[data-late-filter] b") == "1"
    assert await violations(page) == []
    await page.click("[data-late-filter]")
    await page.wait_for_selector(f"{chip(omar)}.dimmed")
    assert await page.locator(f"{chip(salma)}.dimmed").count() == 0
    await page.click("[data-late-filter]")
    await page.wait_for_selector(".dimmed", state="detached")
    assert portal.complaints == []


async def test_the_pass_is_offered_after_saving_and_can_be_copied_with_a_click(portal):
    host = await at_the_board(portal)
    await host.tap(free("T2"))
    await host.page.wait_for_selector("#drawer [name=customer_name]:focus")
    await host.type("Salma")
    await host.press("Tab")
    await host.type("0612345678")
    await host.press("Enter")
    await host.page.wait_for_selector(".pass-card img")
    await host.page.wait_for_load_state("networkidle")
    assert await host.page.eval_on_selector(".pass-card img", "one => one.naturalWidth") > 100
    assert await violations(host.page) == []

    await host.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await host.page.click("[data-copy='#pass-link']")
    copied = await host.page.evaluate("navigator.clipboard.readText()")
    assert "/access/" in copied
    assert portal.complaints == []


async def date_of(portal, reservation):
    now = await portal.box.now_of(reservation)
    return now.date, now.slot, now.table_number


async def changed(host):
    await host.page.wait_for_selector("#drawer details.change:not([open])")


@SIZES
async def test_a_change_of_date_takes_ten_seconds_and_a_group_of_fourteen_fifteen(portal, size):
    salma = await portal.box.guest(slot="19:30")
    host = await at_the_board(portal, size)

    await host.tap(chip(salma))
    await host.tap("#drawer details.change > summary")
    await host.page.wait_for_selector("#change-date")
    assert await violations(host.page) == []
    await host.tap("#change-date")
    host.keys += 8
    await host.page.fill("#change-date", "2026-11-28")
    await host.page.wait_for_timeout(300)
    await host.press("Enter")
    await changed(host)

    assert await date_of(portal, salma) == ("2026-11-28", "19:30", "T1")
    assert host.seconds <= 10
    assert await portal.box.rows("SELECT kind FROM email") == [("changed",)]

    await host.start_over()
    await host.tap(free("T2"))
    await host.tap("#drawer [name=guests][type=number]")
    await host.press("Control+a")
    await host.type("14")
    await host.tap("#drawer [name=customer_name]")
    await host.page.wait_for_selector("#drawer [name=more]:checked >> nth=2")
    assert await violations(host.page) == []
    await host.type("Salma Tazi")
    await host.press("Tab")
    await host.type("0612345678")
    await host.press("Enter")
    await host.page.wait_for_url("**/portal/reservations/*")

    assert await portal.box.rows("SELECT guests FROM reservation ORDER BY seq") == [(2,), (14,)]
    assert host.seconds <= 15
    await host.page.goto("/portal/tonight")
    assert await host.page.locator("table .guest").count() == 4
    assert await violations(host.page) == []
    assert portal.complaints == []


async def test_a_reservation_can_be_dragged_to_another_table_or_time(portal):
    salma = await portal.box.guest(slot="19:30")
    host = await at_the_board(portal)

    await host.page.drag_and_drop(chip(salma), free("T3"))
    await host.page.wait_for_selector(f"#t-{table_id('T3')} [data-reservation]")
    assert await date_of(portal, salma) == ("2026-11-21", "19:30", "T3")

    await host.page.keyboard.press("Escape")
    await host.page.drag_and_drop(chip(salma), free("T2", "22:00"))
    await host.page.wait_for_selector("#drawer details.change[open]")
    assert (await date_of(portal, salma))[1] == "19:30"
    await host.page.click("#drawer details.change form button:not([name])")
    await host.page.wait_for_selector(f"#t-{table_id('T2')} [data-reservation]")
    assert await date_of(portal, salma) == ("2026-11-21", "22:00", "T2")
    assert portal.complaints == []


async def test_dragging_a_reservation_to_a_table_that_is_too_small_asks_first(portal):
    salma = await portal.box.guest(slot="19:30", guests=4)
    sql = "UPDATE venue_table SET capacity_max = 2 WHERE number = 'T2'"
    await portal.box.environment.database.write(lambda tx: tx.execute(sql))
    host = await at_the_board(portal)

    await host.page.drag_and_drop(chip(salma), free("T2"))
    await host.page.check("#drawer details.change [name=sure]")
    await host.page.click("#drawer details.change form button:not([name])")

    await host.page.wait_for_selector(f"#t-{table_id('T2')} [data-reservation]")
    assert (await date_of(portal, salma))[2] == "T2"


async def test_a_reservation_can_be_changed_without_a_mouse(portal):
    salma = await portal.box.guest(slot="19:30")
    host = await at_the_board(portal)
    await host.page.focus(chip(salma))
    await host.press("Enter")
    await host.page.wait_for_selector("#drawer details.change")
    await host.page.focus("#drawer details.change > summary")
    await host.press("Enter")
    await host.press("Tab", 3)  # the three parts of the date, then the time
    await host.page.focus("#change-slot")
    await host.press("ArrowDown")
    await host.page.wait_for_timeout(300)
    await host.page.focus("#drawer details.change form button:not([name])")
    await host.press("Enter")
    await changed(host)

    assert (await date_of(portal, salma))[1] == "22:00"


async def test_without_javascript_a_walk_in_can_be_seated_and_leave_and_a_booking_changed(portal):
    host = await at_the_board(portal, java_script_enabled=False)
    await host.tap(free("T2"))
    await host.tap(".walk-in [name=guests][value='3']")
    await host.tap("form[action$='/left'] button")
    await host.page.wait_for_selector("form[action$='/take-back']")
    [found] = await portal.box.rows("SELECT status, arrived FROM reservation")
    assert found == ("completed", 3)

    salma = await portal.box.guest(slot="19:30")
    await host.page.goto("/portal/tonight")
    await host.tap(chip(salma))
    await host.tap("details.change > summary")
    await host.page.fill("#change-date", "2026-11-28")
    await host.tap("details.change button:not([name])")
    await host.page.wait_for_selector("main > .note")
    assert await date_of(portal, salma) == ("2026-11-28", "19:30", "T1")


async def test_marking_a_party_as_left_and_undoing_it_need_no_mouse(portal):
    salma = await portal.box.guest(slot="19:30", arrived=2, checked_in_at=1)
    host = await at_the_board(portal)
    await host.page.focus(chip(salma))

    await host.press("Enter")
    await host.page.wait_for_selector(action("left"))
    for key, then in (("left", "take-back"), ("take-back", "left")):
        await host.page.focus(action(key))
        await host.press("Enter")
        await host.page.wait_for_selector(action(then))
    assert (await portal.box.now_of(salma)).status == "confirmed"
