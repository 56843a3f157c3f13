"""`/portal/people/log`: the security log, in sentences (docs/security.md, S23)."""

from aiohttp import web

from appliance.store.connection import Reader
from appliance.store.history import staff_names
from appliance.store.keys import list_keys
from appliance.store.security_log import find_broken_security_link, list_security_entries
from web.portal.answer import instants_of, portal_page
from web.portal.context import BOX, HOUSE
from web.portal.forms import asked_number

_PAGE = 100
_ROW = 2**53


async def show_log(request: web.Request) -> web.Response:
    """`GET /portal/people/log`: the newest first; `?environment=test` for that one."""
    box = request.app[BOX]
    of_test = request.query.get("environment") == "test"
    database = (box.test if of_test else box.live).database

    def read(reader: Reader) -> dict[str, object]:
        found = list_security_entries(
            reader, _PAGE + 1, before=asked_number(request, "before", _ROW)
        )
        return {
            "entries": found[:_PAGE],
            "next": found[_PAGE - 1].seq if len(found) > _PAGE else None,
            "broken": find_broken_security_link(reader),
            "names": {key.id: key.name for key in list_keys(reader)} | names,
        }

    names = await request[HOUSE].database.read(staff_names)
    values = {
        **await database.read(read),
        "of_test": of_test,
        "days": box.settings.retention.security_days,
        "in_words": instants_of(request),
    }
    return portal_page(request, "portal/people/log.html", values)
