"""Setup steps of a new box, shown above their pages until all are done."""

from aiohttp import web

from appliance.database.connection import Reader
from appliance.door.terminals import PORTAL_TERMINAL_ID, list_terminals
from appliance.http.request import ENVIRONMENT
from appliance.staff.accounts import STEPS, close_setup, find_setup
from appliance.venue.rows import get_venue, list_slots, list_tables
from appliance.venue.venue_file import UNFURNISHED
from web.portal.box_settings import next_settings
from web.portal.guard import staff_of
from web.portal.navigation import PortalRoute
from web.portal.responses import see_other
from web.portal.session import HOUSE


async def steps_of(request: web.Request) -> list[tuple[str, bool]]:
    """Return (step, whether done) for the owner of a new box; [] once all are done."""
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
    """`POST /portal/box/setup-done`: hide the steps; open ones can be done later."""
    await request[HOUSE].database.write(close_setup)
    return see_other(request, "/tonight")


def _behind(reader: Reader) -> set[str] | None:
    """Return the steps that are done or postponed; None without a setup."""
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
