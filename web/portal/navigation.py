"""Portal navigation: the areas, the routes, and the page to which a form belongs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from aiohttp import web

from appliance.core.i18n import mark as _
from appliance.staff.model import StaffMember
from web.portal.forms import Form

SAFE = frozenset({"GET", "HEAD"})
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
FormHandler = Callable[[web.Request, Form], Awaitable[web.StreamResponse]]
StaffRole = Literal["owner", "manager", "host", "door"]


@dataclass(frozen=True, slots=True)
class PortalRoute:
    """A portal route. `path` starts with `/portal`. The handler of a POST also gets the form.

    `role` is the lowest role that may use the route. If `live_only` is true, the route exists only
    in the live environment, like the routes for staff accounts. Other routes also exist under
    `/test`. `takes_files` is true if the form may be multipart. `page` shows the form again if it
    is rejected.
    """

    method: Literal["GET", "POST"]
    path: str
    role: StaffRole
    handler: Callable[..., Awaitable[web.StreamResponse]]
    live_only: bool = False
    takes_files: bool = False
    page: Handler | None = None


@dataclass(frozen=True, slots=True)
class Area:
    """An entry in the navigation. `label` is the English text, which is translated for display."""

    name: str
    label: str
    icon: str
    role: StaffRole
    live_only: bool = False


AREAS = (
    Area("tonight", _("Tonight"), "evening", "door"),
    Area("reservations", _("Reservations"), "list", "host"),
    Area("venue", _("Venue"), "table", "manager"),
    Area("door", _("Door"), "door", "manager"),
    Area("integrations", _("Integrations and API"), "plug", "manager"),
    Area("people", _("Team"), "people", "owner", live_only=True),
    Area("box", _("The box"), "box", "manager", live_only=True),
)


def areas_for(person: StaffMember, environment: str) -> list[Area]:
    """Return the areas that the staff member may open in the given environment."""
    return [
        area
        for area in AREAS
        if person.may(area.role) and (environment == "live" or not area.live_only)
    ]


def nearest_page(request: web.Request) -> str:
    """Return the request's path. For a POST, return the path of the page that the form belongs to.

    This is the nearest page at or above the request's path.
    """
    return request.path if request.method in SAFE else page_above(request) or "/portal"


def page_above(request: web.Request) -> str:
    """Return the request's path or the nearest path above it that has a page.

    Return "" if none of these paths has a page.
    """
    path = request.path
    while path and not _is_page(request, path):
        path = path.rpartition("/")[0]
    return path


def same_page(request: web.Request) -> str:
    """Return the current page's URL without the parameters `note` and `lang`."""
    if request.method not in SAFE:
        return nearest_page(request)
    return str(request.rel_url.without_query_params("note", "lang"))


def _is_page(request: web.Request, path: str) -> bool:
    for route in request.app.router.routes():
        if route.method == "GET" and route.resource is not None:
            info = route.resource.get_info()
            pattern = info.get("pattern")
            if info.get("path") == path or (pattern is not None and pattern.fullmatch(path)):
                return True
    return False
