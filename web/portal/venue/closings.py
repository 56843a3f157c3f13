"""`/portal/venue/closings`: days on which nothing can be booked."""

from datetime import date

from aiohttp import web

from appliance.actions.close_days import close_days, open_days
from appliance.errors import InvalidDate, field_invalid
from appliance.model.evening import parse_date
from appliance.model.venue import Closing
from appliance.model.venue_clash import Clashes, closing_clashes
from appliance.model.venue_list import NAME_MAX
from appliance.store.connection import Reader
from appliance.store.readings import find_tonight
from appliance.store.venue import list_closings, list_coming
from terminal_bridge.context import ENVIRONMENT
from web.portal.answer import language_of, portal_page, see_other
from web.portal.forms import read_form
from web.portal.sent_twice import do_once, new_token
from web.portal.venue.clashes import accepted_by, describe, id_of, saved_or_asked


async def show_closings(request: web.Request) -> web.Response:
    """`GET …/closings`: what is closed from tonight on, with who is expected all the same."""
    language = language_of(request)
    tonight, found = await request[ENVIRONMENT].database.read(_read)

    def in_words(closing: Closing) -> str:
        first = language.long_date(date.fromisoformat(closing.first))
        if closing.first == closing.last:
            return first
        last = language.long_date(date.fromisoformat(closing.last))
        return language.gettext("%(first)s to %(last)s", first=first, last=last)

    values: dict[str, object] = {
        "tonight": tonight.isoformat(),
        "token": new_token(request),
        "closings": [
            (closing, in_words(closing), describe(clashes, language)) for closing, clashes in found
        ],
    }
    return portal_page(request, "portal/venue/closings.html", values)


async def close(request: web.Request) -> web.Response:
    """`POST …/closings`: close a day or a period, unless coming reservations come first."""
    form = await read_form(request)
    first = parse_date(form.text("first", 10))
    last = parse_date(form.text("last", 10)) if form.text("last", 10) else first
    if first is None or last is None:
        raise InvalidDate(field="first")
    if last < first:
        raise field_invalid("last", "last_day")
    clashes = await request[ENVIRONMENT].database.write(
        close_days, first, last, form.text("reason", NAME_MAX), accepted_by(form)
    )
    return await saved_or_asked(request, clashes, "/venue/closings")


async def reopen(request: web.Request) -> web.Response:
    """`POST …/closings/{id}/remove`: the days can be booked again."""
    form, database = await read_form(request), request[ENVIRONMENT].database
    closing_id = id_of(request)
    await do_once(request, form, lambda: database.write(open_days, closing_id), closing_id)
    return see_other(request, "/venue/closings", "saved")


def _read(reader: Reader) -> tuple[date, list[tuple[Closing, Clashes]]]:
    tonight = find_tonight(reader)
    coming = list_coming(reader, tonight.isoformat())
    return tonight, [
        (closing, closing_clashes(coming, closing))
        for closing in list_closings(reader)
        if closing.last >= tonight.isoformat()
    ]
