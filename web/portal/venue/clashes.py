"""Before a change that concerns reservations still to come: who they are, and "all the same"."""

from collections.abc import Iterable
from datetime import date

from aiohttp import web

from appliance.errors import NotFound
from appliance.i18n import Language
from appliance.model.booking import parse_uuid
from appliance.model.venue_clash import Clash, Clashes, clash_mark
from web.portal.answer import language_of, portal_page, see_other
from web.portal.forms import Form, read_form

ACCEPTED = "accepted"


def accepted_by(form: Form) -> str | None:
    """The mark of the list that the person has read, if any."""
    return form.text(ACCEPTED, 64) or None


async def saved_or_asked(request: web.Request, clashes: Clashes, back: str) -> web.Response:
    """On to `back` when it is done; else the list, and the same form with "all the same"."""
    if not clashes:
        return see_other(request, back, "saved")
    form = await read_form(request)
    values: dict[str, object] = {
        "clashes": describe(clashes, language_of(request)),
        "sent": [(name, value) for name, value in form.sent() if name != ACCEPTED],
        "mark": clash_mark(clashes),
        "back": back,
        "action": request.path,
    }
    return portal_page(request, "portal/venue/clashes.html", values, status=409)


def describe(clashes: Iterable[Clash], language: Language) -> list[tuple[Clash, str]]:
    """Each with its date in words."""
    return [
        (clash, language.short_date(date.fromisoformat(clash.reservation.date), year=True))
        for clash in clashes
    ]


def id_of(request: web.Request) -> str:
    """The id in the path; NotFound when it is none."""
    found = parse_uuid(request.match_info["id"])
    if found is None:
        raise NotFound
    return found
