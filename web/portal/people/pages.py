"""`/portal/people`: everybody, as the owner sees them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from aiohttp import web

from appliance.environment import house_base, outside_base, trust_page
from appliance.model.session import FREE_TRIES
from appliance.model.staff import ROLES, StaffMember
from appliance.store.connection import Reader
from appliance.store.second_steps import list_second_steps
from appliance.store.sessions import count_sessions
from appliance.store.staff import list_locked, list_open_invitations, list_staff
from appliance.tokens import account_hash
from web.portal.account.pages import find_zone, moment
from web.portal.answer import language_of, portal_page
from web.portal.context import HOUSE
from web.portal.sent_twice import new_token


@dataclass(frozen=True, slots=True)
class Listed:
    """A person with what the owner may want to do something about."""

    person: StaffMember
    sessions: int
    is_locked: bool
    link_until: int | None
    has_second_step: bool


async def show_people(request: web.Request) -> web.Response:
    """`GET /portal/people`."""
    return await people_page(request)


async def people_page(
    request: web.Request,
    *,
    link: tuple[str, str] | None = None,
    said: Mapping[str, object] = MappingProxyType({}),
    declined: tuple[str, str] | None = None,
    status: int = 200,
) -> web.Response:
    """The page; `link` is (whose, the path of the one-time link), shown this once.

    `said` is what was wrong with an invitation, and what was typed. `declined` is (whose, why) of
    anything else.
    """
    house, language = request[HOUSE], language_of(request)
    server, inside = house.settings.server, house_base(house.links, house.settings.server)
    people = await house.database.read(_read)
    zone = await house.database.read(find_zone)
    values: dict[str, object] = {
        "people": [(p, moment(p.link_until, zone, language)) for p in people],
        "roles": ROLES,
        "link": link,
        "inside": inside,
        "outside": outside_base(house.links, server),
        "trust": trust_page(house.links, inside),
        "token": new_token(request),
        "problem": _unless_listed(declined, people),
        "declined": declined,
        "typed": {},
        **said,
    }
    return portal_page(request, "portal/people/page.html", values, status)


def _unless_listed(declined: tuple[str, str] | None, people: list[Listed]) -> str | None:
    """What no card of the page is there for."""
    if declined is None or any(one.person.id == declined[0] for one in people):
        return None
    return declined[1]


def _read(reader: Reader) -> list[Listed]:
    people = list_staff(reader)
    accounts = {p.id: account_hash(p.name) for p in people}
    locked = list_locked(reader, accounts, FREE_TRIES)
    links, sessions = list_open_invitations(reader), count_sessions(reader)
    second_steps = list_second_steps(reader)
    return [
        Listed(
            p,
            sessions.get(p.id, 0),
            p.id in locked and p.disabled_at is None,
            links.get(p.id),
            p.id in second_steps,
        )
        for p in people
    ]
