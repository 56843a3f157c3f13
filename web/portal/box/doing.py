"""What can be done about the box from its room: a test letter, a restart."""

from aiohttp import web

from appliance.actions.note_security import note_security
from web.portal.answer import portal_page
from web.portal.box.letters import try_letter
from web.portal.box.pages import box_page
from web.portal.context import BOX, HOUSE, RESTART
from web.portal.forms import read_form
from web.portal.guard import staff_of


async def send_test_letter(request: web.Request) -> web.Response:
    """`POST /portal/box/test-letter`: by the settings in force."""
    recipient = (await read_form(request)).text("recipient", 254)
    tried = await try_letter(request, request.app[BOX].settings.mail, recipient)
    return await box_page(request, tried=tried, recipient=recipient)


async def restart(request: web.Request) -> web.Response:
    """`POST /portal/box/restart`: the settings that were saved come into force.

    Requests in flight are finished; who comes meanwhile waits a second or two.
    """
    if RESTART not in request.app:
        return await box_page(request)
    await request[HOUSE].database.write(note_security, f"staff:{staff_of(request).id}", "restarted")
    request.app[RESTART]()
    answer = portal_page(request, "portal/box/restarting.html", {})
    answer.force_close()  # what is asked next is asked of the box that begins anew
    return answer
