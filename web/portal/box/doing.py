"""What can be done about the box from its room: a backup, a test letter, settings, a restart."""

import asyncio

from aiohttp import web

from appliance.actions.note_security import note_security
from appliance.backup.kit import kit_html
from appliance.backup.recovery_key import ensure_recovery_key
from appliance.errors import Refusal
from appliance.settings import RANGES
from appliance.store.venue import get_venue
from web.portal.answer import HEADERS, language_of, portal_page, rule_text, see_other
from web.portal.box.backing_up import BACKING_UP
from web.portal.box.letters import try_letter
from web.portal.box.pages import CHANGEABLE, box_page
from web.portal.box.saved import directory_of, save_settings, waits_for_restart
from web.portal.context import BOX, HOUSE, RESTART
from web.portal.forms import read_form
from web.portal.guard import staff_of
from web.portal.same_person import doubt_person

# The sheet stands alone, with its style inside: as it is saved, so it is printed.
_KIT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
)


async def send_test_letter(request: web.Request) -> web.Response:
    """`POST /portal/box/test-letter`: by the settings in force."""
    recipient = (await read_form(request)).text("recipient", 254)
    tried = await try_letter(request, request.app[BOX].settings.mail, recipient)
    return await box_page(request, tried=tried, recipient=recipient)


async def back_up(request: web.Request) -> web.StreamResponse:
    """`POST /portal/box/backup`: one now; the page tells how far it is."""
    request.app[BACKING_UP].start(request.app[BOX], directory_of(request))
    return see_other(request, "/box#backups")


async def show_recovery_kit(request: web.Request) -> web.Response:
    """`POST /portal/box/recovery-kit`: the sheet to print, to an owner who says the password."""
    form, box = await read_form(request), request.app[BOX]
    doubt = await doubt_person(request, form.secret("password"))
    if doubt is not None:
        return await box_page(request, kit_problem=doubt.sentence, status=doubt.status)
    actor = f"staff:{staff_of(request).id}"
    await request[HOUSE].database.write(note_security, actor, "recovery_kit_shown")
    key = await asyncio.to_thread(ensure_recovery_key, directory_of(request), box.tokens)
    venue = await request[HOUSE].database.read(get_venue)
    return web.Response(
        text=kit_html(key, venue.name),
        content_type="text/html",
        charset="utf-8",
        headers={**HEADERS, "Content-Security-Policy": _KIT_POLICY},
    )


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


async def change_settings(request: web.Request) -> web.StreamResponse:
    """`POST /portal/box/settings`: written to settings.toml, in force from the next start on."""
    form = await read_form(request)
    try:
        numbers = {name: form.whole(name, *RANGES[name]) for name in CHANGEABLE}
        await save_settings(request, {"booking.enabled": form.ticked("booking.enabled"), **numbers})
    except Refusal as refusal:
        said = rule_text(refusal, language_of(request)) or refusal.error
        return await box_page(
            request, wrong=(refusal.field or "", said), typed=form.typed(), status=refusal.status
        )
    return see_other(request, "/box", "saved-for-later" if waits_for_restart(request) else "saved")
