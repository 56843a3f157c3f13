"""`/portal/people`: who may sign in, as what, and what the owner does about it."""

from collections.abc import Callable
from functools import partial

from aiohttp import web

from appliance.actions.create_staff import Invitation, create_staff
from appliance.actions.manage_staff import (
    change_role,
    disable_staff,
    enable_staff,
    end_sessions,
    invite_again,
    unlock,
)
from appliance.actions.second_step import remove_second_step
from appliance.environment import house_base, outside_base, trust_page
from appliance.errors import NotFound
from appliance.house_errors import NameTaken
from appliance.model.session import FREE_TRIES
from appliance.model.staff import ROLES
from appliance.store.connection import Reader
from appliance.store.second_steps import list_second_steps
from appliance.store.sessions import count_sessions
from appliance.store.staff import find_staff, list_locked, list_open_invitations, list_staff
from appliance.tokens import account_hash
from web.portal.answer import instants_of, portal_page, refused_on, see_other
from web.portal.context import HOUSE
from web.portal.forms import Form
from web.portal.guard import actor_of, id_of, staff_of
from web.portal.navigation import Handler, PortalRoute
from web.portal.security_log import show_log


async def show_people(
    request: web.Request, link: tuple[str, Invitation] | None = None
) -> web.Response:
    """`GET /portal/people`. `link` is a one-time link and whose it is, shown this once.

    What was declined of a person is said on their card.
    """
    house = request[HOUSE]
    inside = house_base(house.links, house.settings.server)
    values = {
        **await house.database.read(_read),
        "in_words": instants_of(request),
        "roles": ROLES,
        "link": link and (link[0], f"/portal/welcome#{link[1].secret}"),
        "inside": inside,
        "outside": outside_base(house.links, house.settings.server),
        "trust": trust_page(house.links, inside),
        "declined": request.match_info.get("id"),
    }
    return portal_page(request, "portal/people/page.html", values)


@refused_on(show_people, "name", "role")
async def invite(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/people`: somebody new; the link is shown this once."""
    name, role = form.name(), form.one_of("role", ROLES)
    try:
        made = await request[HOUSE].database.write(
            create_staff, name, role, actor=actor_of(request)
        )
    except NameTaken as refusal:
        refusal.field = "name"
        raise
    return await show_people(request, (name, made))


@refused_on(show_people)
async def make_link(request: web.Request, _form: Form) -> web.StreamResponse:
    """`POST …/link`: for a forgotten password."""
    database, person_id = request[HOUSE].database, id_of(request)
    person = await database.read(find_staff, person_id)
    made = await database.write(invite_again, person_id, actor=actor_of(request))
    return await show_people(request, (person.name if person else "", made))


@refused_on(show_people)
async def set_role(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST …/role`: in force from the next request on."""
    return await _do(request, change_role, form.text("seen"), form.one_of("role", ROLES))


def _plainly(action: Callable[..., object]) -> Handler:
    """A handler of a form that only says that it is to be done."""

    async def act(request: web.Request, _form: Form) -> web.StreamResponse:
        return await _do(request, action)

    return refused_on(show_people)(act)


async def remove_second_step_of(request: web.Request) -> web.StreamResponse:
    """`POST …/second-step/remove`: for a lost phone. One's own takes the password to remove."""
    if id_of(request) == staff_of(request).id:
        raise NotFound
    return await _do(request, remove_second_step)


async def _do(
    request: web.Request, action: Callable[..., object], *args: object
) -> web.StreamResponse:
    await request[HOUSE].database.write(action, id_of(request), *args, actor=actor_of(request))
    return see_other(request, "/people", "saved")


def _read(reader: Reader) -> dict[str, object]:
    people = list_staff(reader)
    accounts = {p.id: account_hash(p.name) for p in people}
    return {
        "people": people,
        "locked": list_locked(reader, accounts, FREE_TRIES),
        "links": list_open_invitations(reader),
        "sessions": count_sessions(reader),
        "second_steps": list_second_steps(reader),
    }


_owners = partial(PortalRoute, role="owner", of_the_house=True)
_AT = "/portal/people"
_ONE = f"{_AT}/{{id}}"

PEOPLE_ROUTES = (
    _owners("GET", _AT, handler=show_people),
    _owners("POST", _AT, handler=invite),
    _owners("GET", f"{_AT}/log", handler=show_log),
    _owners("POST", f"{_ONE}/link", handler=make_link),
    _owners("POST", f"{_ONE}/role", handler=set_role),
    _owners("POST", f"{_ONE}/disable", handler=_plainly(disable_staff)),
    _owners("POST", f"{_ONE}/enable", handler=_plainly(enable_staff)),
    _owners("POST", f"{_ONE}/unlock", handler=_plainly(unlock)),
    _owners("POST", f"{_ONE}/second-step/remove", handler=remove_second_step_of),
    _owners("POST", f"{_ONE}/sign-out", handler=_plainly(end_sessions)),
)
