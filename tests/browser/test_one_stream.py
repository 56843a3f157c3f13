"""All pages of a browser share one stream, so that connections stay free for requests."""

import asyncio
from datetime import date, timedelta

import pytest

from appliance.door.terminals import offer_pairing
from tests.browser.phones import Phone
from tests.builders import TONIGHT
from tests.waiting import until

TURN = "kind => dispatchEvent(new PageTransitionEvent(kind, { persisted: true }))"
EVENINGS = [(date.fromisoformat(TONIGHT) + timedelta(days=n)).isoformat() for n in range(8)]
SHOW = """(state) => {
  Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


class Browser:
    """A browser whose staff are signed in, and its open streams."""

    def __init__(self, portal, context) -> None:
        self.portal, self.context = portal, context
        self.streams = set()
        context.on("request", lambda asked: is_stream(asked) and self.streams.add(asked))
        context.on("requestfailed", self.end)
        context.on("requestfinished", self.end)

    def end(self, request):
        self.streams.discard(request)

    async def board(self, evening=TONIGHT):
        page = await self.context.new_page()
        async with self.context.expect_event("request", is_stream):
            await page.goto(f"/portal/tonight?date={evening}")
        return page

    async def has_streams(self, number):
        async def is_so():
            # Playwright does not report the end of a closed page's streams.
            return sum(not each.frame.page.is_closed() for each in self.streams) == number

        await until(is_so)


def is_stream(request):
    return request.resource_type == "eventsource"


def chip(reservation):
    return f'[data-reservation="{reservation.id}"]'


async def browser_of(portal):
    return Browser(portal, (await portal.desk()).context)


async def test_eight_boards_and_the_door_app_share_one_stream_and_all_receive_updates(portal):
    browser = await browser_of(portal)
    boards = {evening: await browser.board(evening) for evening in EVENINGS}
    page = await browser.context.new_page()
    phone = Phone(portal.box.url, "live", browser.context, page, None, None)
    offered = await portal.box.environment.database.write(offer_pairing, "Porte 1", "override")
    await phone.pair(offered.secret)
    guest = await portal.box.guest()

    assert await phone.scan(await portal.box.pass_of(guest)) == "checked_in"

    assert await page.is_hidden("#verdict-offline")  # the box has decided
    await boards[TONIGHT].wait_for_selector(f"{chip(guest)}.in")
    for evening in EVENINGS[1:]:
        booked = await portal.box.guest(date=evening, access_code=None)
        await boards[evening].wait_for_selector(chip(booked))
    await browser.has_streams(1)


@pytest.mark.parametrize("how", ["closed", "hidden"])
async def test_another_page_takes_over_the_stream_when_the_first_page_is_closed(portal, how):
    browser = await browser_of(portal)
    first, second = await browser.board(), await browser.board()

    await (first.close() if how == "closed" else first.evaluate(SHOW, "hidden"))

    booked = await portal.box.guest()
    await second.wait_for_selector(chip(booked))
    await browser.has_streams(1)


@pytest.mark.parametrize(
    ("script", "away", "back"), [(SHOW, "hidden", "visible"), (TURN, "pagehide", "pageshow")]
)
async def test_a_hidden_page_keeps_no_stream_and_shows_missed_changes_on_return(
    portal, script, away, back
):
    browser = await browser_of(portal)
    page = await browser.board()

    await page.evaluate(script, away)

    await browser.has_streams(0)
    booked = await portal.box.guest()
    await page.evaluate(script, back)
    await page.wait_for_selector(chip(booked))


async def test_a_page_reports_a_box_that_has_not_answered(portal):
    booked = await portal.box.guest()
    page = await (await browser_of(portal)).board()
    held = asyncio.Event()

    async def hold(route):
        await held.wait()
        await route.continue_()

    await page.route("**/portal/reservations/**", hold)
    await page.click(f"table {chip(booked)}")
    await page.wait_for_selector("[data-waiting]", state="visible")
    held.set()

    await page.wait_for_selector("#drawer [data-detail]")
    await page.wait_for_selector("[data-waiting]", state="hidden")
