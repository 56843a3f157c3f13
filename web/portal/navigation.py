"""Portal navigation: areas, route type, and the page that a form belongs to."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from aiohttp import web

from appliance.core.i18n import mark as _
from appliance.staff.model import StaffMember

SAFE = frozenset({"GET", "HEAD"})
_HOME = "/portal"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
StaffRole = Literal["owner", "manager", "host", "door"]


@dataclass(frozen=True, slots=True)
class PortalRoute:
    """A route of the portal. `path` starts with `/portal`; roles that include `role` may call it.

    A route `of_the_house` (people, the box) exists once; all others exist in each environment,
    also under `/test`. `takes_files`: its form may be multipart.
    """

    method: Literal["GET", "POST"]
    path: str
    role: StaffRole
    handler: Handler
    of_the_house: bool = False
    takes_files: bool = False


@dataclass(frozen=True, slots=True)
class Area:
    """An entry of the navigation; `label` is the English msgid."""

    name: str
    label: str
    icon: str
    role: StaffRole
    of_the_house: bool = False


AREAS = (
    Area("tonight", _("Tonight"), "evening", "door"),
    Area("reservations", _("Reservations"), "list", "host"),
    Area("venue", _("Venue"), "table", "manager"),
    Area("door", _("Door"), "door", "manager"),
    Area("integrations", _("Integrations and API"), "plug", "manager"),
    Area("people", _("People"), "people", "owner", of_the_house=True),
    Area("box", _("The box"), "box", "manager", of_the_house=True),
)


def areas_for(person: StaffMember, environment: str) -> list[Area]:
    """Return the areas that this person may open in that environment."""
    return [
        area
        for area in AREAS
        if person.may(area.role) and (environment == "live" or not area.of_the_house)
    ]


def nearest_page(request: web.Request) -> str:
    """Return the request's path; for a form, the nearest page at or above its path."""
    return request.path if request.method in SAFE else page_above(request) or _HOME


def page_above(request: web.Request) -> str:
    """Return the nearest page at or above the request's path; "" if there is none."""
    path = request.path
    while path and not _is_page(request, path):
        path = path.rpartition("/")[0]
    return path


def same_page(request: web.Request) -> str:
    """Return the URL of the same page, without parameters that apply only once."""
    if request.method not in SAFE:
        return nearest_page(request)
    return str(request.rel_url.without_query_params("note", "lang"))


def _is_page(request: web.Request, path: str) -> bool:
    for route in request.app.router.routes():
        if route.method != "GET" or route.resource is None:
            continue
        info = route.resource.get_info()
        pattern = info.get("pattern")
        if info.get("path") == path or (pattern is not None and pattern.fullmatch(path)):
            return True
    return False
