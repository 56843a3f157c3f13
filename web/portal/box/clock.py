"""The owner's word about a clock that leapt: what the machine says, and whether it is right."""

from aiohttp import web

from appliance.actions.confirm_clock import confirm_clock
from web.portal.account.pages import find_zone
from web.portal.answer import language_of, see_other
from web.portal.box.pages import box_page, machine_time
from web.portal.context import BOX, HOUSE
from web.portal.forms import read_form
from web.portal.guard import staff_of


async def confirm(request: web.Request) -> web.StreamResponse:
    """`POST /portal/box/clock`: whoever names the day of this machine lets things expire by it.

    The day is asked for, so that nobody vouches for a clock that they did not look at.
    """
    day = (await read_form(request)).text("day")
    zone = await request[HOUSE].database.read(find_zone)
    if day != machine_time(request, zone).date().isoformat():
        _ = language_of(request).gettext
        sentence = _(
            "The box tells another day. Then its clock is wrong: have it set, or let the box "
            "reach a time server."
        )
        return await box_page(request, wrong=("day", sentence), status=422)
    for environment in request.app[BOX].environments:
        await environment.database.write(confirm_clock, f"staff:{staff_of(request).id}")
    return see_other(request, "/box", "clock-confirmed")
