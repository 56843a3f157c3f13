"""`/portal/people`: staff accounts, and the audit log as text."""

from collections.abc import Callable
from functools import partial

from aiohttp import web

from appliance.api_keys import list_keys
from appliance.core.errors import NameTaken, NotFound
from appliance.core.tokens import account_hash
from appliance.database.connection import Reader
from appliance.environment import public_base, staff_base, trust_page
from appliance.reservations.rows import staff_names
from appliance.staff.accounts import (
    Invitation,
    change_role,
    create_staff,
    disable_staff,
    enable_staff,
    end_sessions,
    invite_again,
    unlock,
)
from appliance.staff.audit_log import find_broken_audit_link, list_audit_entries
from appliance.staff.model import ROLES, find_staff, list_locked, list_open_invitations, list_staff
from appliance.staff.sign_in import FREE_TRIES, count_sessions
from appliance.staff.two_factor import list_two_factor, remove_two_factor
from web.portal.forms import Form, asked_number
from web.portal.guard import actor_of, id_of, staff_of
from web.portal.navigation import Handler, PortalRoute
from web.portal.responses import instants_of, portal_page, refused_on, see_other
from web.portal.session import BOX, HOUSE

_PAGE = 100
_ROW = 2**53


async def show_log(request: web.Request) -> web.Response:
    """`GET /portal/people/log`: newest first; `?environment=test` for that of test."""
    box = request.app[BOX]
    of_test = request.query.get("environment") == "test"
    database = (box.test if of_test else box.live).database

    def read(reader: Reader) -> dict[str, object]:
        found = list_audit_entries(reader, _PAGE + 1, before=asked_number(request, "before", _ROW))
        return {
            "entries": found[:_PAGE],
            "next": found[_PAGE - 1].seq if len(found) > _PAGE else None,
            "broken": find_broken_audit_link(reader),
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


async def show_people(
    request: web.Request, link: tuple[str, Invitation] | None = None
) -> web.Response:
    """`GET /portal/people`. `link` is (name, invitation), shown once.

    An error about a person is shown on their card.
    """
    house = request[HOUSE]
    inside = staff_base(house.links, house.settings.server)
    values = {
        **await house.database.read(_read_form),
        "in_words": instants_of(request),
        "roles": ROLES,
        "link": link and (link[0], f"/portal/welcome#{link[1].secret}"),
        "inside": inside,
        "outside": public_base(house.links, house.settings.server),
        "trust": trust_page(house.links, inside),
        "declined": request.match_info.get("id"),
    }
    return portal_page(request, "portal/people/page.html", values)


@refused_on(show_people, "name", "role")
async def invite(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/people`: invite a person; the link is shown once."""
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
    """`POST …/link`: a new link for a forgotten password."""
    database, person_id = request[HOUSE].database, id_of(request)
    person = await database.read(find_staff, person_id)
    made = await database.write(invite_again, person_id, actor=actor_of(request))
    return await show_people(request, (person.name if person else "", made))


@refused_on(show_people)
async def set_role(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST …/role`: change the role, effective with the next request."""
    return await _do(request, change_role, form.text("seen"), form.one_of("role", ROLES))


def _plainly(action: Callable[..., object]) -> Handler:
    """Return a handler for a form without fields."""

    async def act(request: web.Request, _form: Form) -> web.StreamResponse:
        return await _do(request, action)

    return refused_on(show_people)(act)


async def remove_two_factor_of(request: web.Request) -> web.StreamResponse:
    """`POST …/second-step/remove`: disable two-factor for a lost phone, not one's own."""
    if id_of(request) == staff_of(request).id:
        raise NotFound
    return await _do(request, remove_two_factor)


async def _do(
    request: web.Request, action: Callable[..., object], *args: object
) -> web.StreamResponse:
    await request[HOUSE].database.write(action, id_of(request), *args, actor=actor_of(request))
    return see_other(request, "/people", "saved")


def _read_form(reader: Reader) -> dict[str, object]:
    people = list_staff(reader)
    accounts = {p.id: account_hash(p.name) for p in people}
    return {
        "people": people,
        "locked": list_locked(reader, accounts, FREE_TRIES),
        "links": list_open_invitations(reader),
        "sessions": count_sessions(reader),
        "second_steps": list_two_factor(reader),
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
    _owners("POST", f"{_ONE}/second-step/remove", handler=remove_two_factor_of),
    _owners("POST", f"{_ONE}/sign-out", handler=_plainly(end_sessions)),
)
