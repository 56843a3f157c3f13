"""The steps of a new box: the rooms that furnish it, in a row above each until all is done."""

from aiohttp import web

from appliance.database.connection import Reader
from appliance.door.terminals import PORTAL_TERMINAL_ID, list_terminals
from appliance.http.request import ENVIRONMENT
from appliance.staff.first_run import STEPS, close_setup, find_setup
from appliance.venue.rows import get_venue, list_slots, list_tables
from appliance.venue.venue_file import UNFURNISHED
from web.portal.box_settings import next_settings
from web.portal.guard import staff_of
from web.portal.navigation import PortalRoute
from web.portal.responses import see_other
from web.portal.session import HOUSE


async def steps_of(request: web.Request) -> list[tuple[str, bool]]:
    """Each step and whether it is behind the owner of a new box; none once all of them are."""
    house = request[HOUSE]
    if request[ENVIRONMENT] is not house or not staff_of(request).may("owner"):
        return []
    behind = await house.database.read(_behind)
    if behind is None:
        return []
    settings = next_settings(request)
    behind |= {"mail"} if settings.mail.host else set()
    behind |= {"address"} if settings.server.app_url else set()
    return [] if behind >= set(STEPS) else [(name, name in behind) for name in STEPS]


async def finish(request: web.Request) -> web.Response:
    """`POST /portal/box/setup-done`: what is not done yet can wait; the row of steps goes."""
    await request[HOUSE].database.write(close_setup)
    return see_other(request, "/tonight")


def _behind(reader: Reader) -> set[str] | None:
    """The steps that are done or were left for later; None where there is no setup."""
    setup = find_setup(reader)
    if setup is None:
        return None
    done = {
        "venue": get_venue(reader).name != UNFURNISHED.name,
        "tables": bool(list_tables(reader)),
        "slots": bool(list_slots(reader)),
        "phone": any(one.id != PORTAL_TERMINAL_ID for one in list_terminals(reader)),
    }
    return {*setup.steps, *(name for name, is_done in done.items() if is_done)}


SETUP_ROUTES = (PortalRoute("POST", "/portal/box/setup-done", "owner", finish, of_the_house=True),)
