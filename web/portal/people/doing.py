"""What the owner does about people: each form is one action."""

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

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
from appliance.errors import NotFound, Refusal
from appliance.house_errors import NameTaken
from appliance.model.booking import parse_uuid
from appliance.model.staff import ROLES
from appliance.store.connection import Transaction
from appliance.store.staff import find_staff
from web.portal.answer import language_of, refusal_text, refused_in_place, see_other
from web.portal.context import HOUSE
from web.portal.forms import Form, field_error, read_form
from web.portal.guard import staff_of
from web.portal.people.pages import people_page
from web.portal.sent_twice import make_once

P = ParamSpec("P")


async def invite(request: web.Request) -> web.StreamResponse:
    """`POST /portal/people`: somebody new; the link is shown this once."""
    form = await read_form(request)

    async def make() -> str:
        name = form.text("name")
        if not name:
            raise field_error("name", "un nom.", "a name.")
        return _path_of(
            await request[HOUSE].database.write(
                create_staff, name, _role(form), actor=_actor(request)
            )
        )

    try:
        path = await make_once(request, form, make, request.path)
    except Refusal as refusal:
        field = "name" if isinstance(refusal, NameTaken) else refusal.field
        said = refused_in_place(refusal, language_of(request), ("name", "role"), field)
        return await people_page(
            request, said={"typed": form.typed(), **said}, status=refusal.status
        )
    return await people_page(request, link=(form.text("name"), path) if path else None)


async def make_link(request: web.Request) -> web.StreamResponse:
    """`POST …/link`: for a forgotten password."""
    form, person_id = await read_form(request), _person_id(request)
    person = await request[HOUSE].database.read(find_staff, person_id)

    async def make() -> str:
        return _path_of(
            await request[HOUSE].database.write(invite_again, person_id, actor=_actor(request))
        )

    try:
        path = await make_once(request, form, make, request.path)
    except Refusal as refusal:
        return await _declined(request, refusal)
    return await people_page(request, link=(person.name if person else "", path) if path else None)


async def set_role(request: web.Request) -> web.StreamResponse:
    """`POST …/role`: in force from the next request on."""
    form = await read_form(request)
    try:
        seen, role = form.text("seen"), _role(form)
    except Refusal as refusal:
        return await _declined(request, refusal)
    return await _do(request, change_role, seen, role, actor=_actor(request))


async def disable(request: web.Request) -> web.StreamResponse:
    """`POST …/disable`: signed out everywhere, and not let in any more."""
    return await _do(request, disable_staff, actor=_actor(request))


async def enable(request: web.Request) -> web.StreamResponse:
    """`POST …/enable`: let in again."""
    return await _do(request, enable_staff, actor=_actor(request))


async def unlock_one(request: web.Request) -> web.StreamResponse:
    """`POST …/unlock`: wrong passwords are forgotten."""
    return await _do(request, unlock, actor=_actor(request))


async def remove_second_step_of(request: web.Request) -> web.StreamResponse:
    """`POST …/second-step/remove`: for a lost phone. One's own takes the password to remove."""
    if _person_id(request) == staff_of(request).id:
        raise NotFound
    return await _do(request, remove_second_step, actor=_actor(request))


async def sign_out_one(request: web.Request) -> web.StreamResponse:
    """`POST …/sign-out`: every browser of that person."""
    return await _do(request, end_sessions, actor=_actor(request))


async def _do(
    request: web.Request,
    action: Callable[Concatenate[Transaction, str, P], Any],
    *args: P.args,
    **kwargs: P.kwargs,
) -> web.StreamResponse:
    try:
        await request[HOUSE].database.write(action, _person_id(request), *args, **kwargs)
    except Refusal as refusal:
        return await _declined(request, refusal)
    return see_other(request, "/people", "saved")


async def _declined(request: web.Request, refusal: Refusal) -> web.Response:
    """The page, with what was declined beside the person it is about."""
    declined = (_person_id(request), refusal_text(refusal, language_of(request)))
    return await people_page(request, declined=declined, status=refusal.status)


def _path_of(invitation: Invitation) -> str:
    return f"/portal/welcome#{invitation.secret}"


def _person_id(request: web.Request) -> str:
    person_id = parse_uuid(request.match_info["id"])
    if person_id is None:
        raise NotFound
    return person_id


def _role(form: Form) -> str:
    role = form.text("role")
    if role not in ROLES:
        raise field_error("role", "un rôle de la liste.", "a role of the list.")
    return role


def _actor(request: web.Request) -> str:
    return f"staff:{staff_of(request).id}"
