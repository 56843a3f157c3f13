"""The settings that an owner changes in the room of the box: booking page, hours, retention."""

from aiohttp import web

from appliance.errors import Refusal
from appliance.settings_checks import RANGES
from web.portal.answer import language_of, rule_text, see_other
from web.portal.box.pages import CHANGEABLE, box_page
from web.portal.box.saved import save_settings, waits_for_restart
from web.portal.forms import read_form


async def save(request: web.Request) -> web.StreamResponse:
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
