"""`/portal/account`: one's own sessions, password, two-factor sign-in and language."""

import asyncio
from functools import partial

from aiohttp import web

from appliance.core.qr import link_svg
from appliance.reservations.request import parse_uuid
from appliance.staff.accounts import end_session
from appliance.staff.model import PASSWORD_MAX, PASSWORD_MIN
from appliance.staff.sign_in import change_password, delete_other_sessions, list_sessions
from appliance.staff.two_factor import (
    app_address,
    confirm_two_factor,
    count_recovery_codes,
    find_two_factor,
    offer_two_factor,
    offered_secret,
    remove_two_factor,
    spell_secret,
)
from appliance.venue.rows import get_venue
from web.portal.forms import Form
from web.portal.guard import actor_of, check_person, hash_new, staff_of
from web.portal.navigation import PortalRoute
from web.portal.responses import instants_of, language_of, portal_page, refused_on, see_other
from web.portal.session import HOUSE, SESSION, forget_session


async def show_account(request: web.Request) -> web.Response:
    """`GET /portal/account`: the page of the signed-in person."""
    database, person = request[HOUSE].database, staff_of(request)
    sessions = await database.read(list_sessions, person.id)
    values: dict[str, object] = {
        "sessions": [s for s in sessions if not s.is_over(database.clock.now())],
        "own": request[SESSION].id,
        "in_words": instants_of(request),
        "second": await database.read(find_two_factor, person.id),
        "codes_left": await database.read(count_recovery_codes, person.id),
        "shortest": PASSWORD_MIN,
        "longest": PASSWORD_MAX,
    }
    return portal_page(request, "portal/account/page.html", values)


async def end_one(request: web.Request) -> web.StreamResponse:
    """`POST /portal/account/sessions/{id}/end`: sign out another browser at once."""
    session_id = parse_uuid(request.match_info["id"]) or ""
    await request[HOUSE].database.write(
        end_session, staff_of(request).id, session_id, actor=actor_of(request)
    )
    return see_other(request, "/account", "session-ended")


async def end_others(request: web.Request) -> web.StreamResponse:
    """`POST /portal/account/sessions/end-others`: sign out all other browsers."""
    session = request[SESSION]
    await request[HOUSE].database.write(delete_other_sessions, session.person.id, session.id)
    return see_other(request, "/account", "session-ended")


@refused_on(show_account)
async def set_new_password(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/account/password`: change the password; ends every session, this one too."""
    person, house, wanted = staff_of(request), request[HOUSE], form.secret("new")
    await check_person(request, form.secret("password"))
    venue = (await house.database.read(get_venue)).name
    hashed = await hash_new(request, wanted, (person.name, venue))
    await house.database.write(change_password, person.id, hashed, session_id=request[SESSION].id)
    response = web.Response(
        status=303, headers={"Location": "/portal/sign-in?note=password-changed"}
    )
    forget_session(response)
    return response


@refused_on(show_account)
async def offer(request: web.Request, form: Form) -> web.Response:
    """`POST /portal/account/second-step`: the QR code for two-factor, after a password check."""
    await check_person(request, form.secret("password"))
    house = request[HOUSE]
    secret = await house.database.write(offer_two_factor, house.keyring, staff_of(request).id)
    return await _show_code(request, secret)


@refused_on(show_account)
async def confirm(request: web.Request, form: Form) -> web.Response:
    """`POST …/confirm`: enable two-factor with a valid code; shows the recovery codes once."""
    house, person = request[HOUSE], staff_of(request)
    codes = await house.database.write(
        confirm_two_factor, house.keyring, person.id, form.text("code")
    )
    if codes is None:
        wrong = language_of(request).gettext(
            "This code does not fit. Wait for the next one; is the time of the phone right?"
        )
        secret = await house.database.read(offered_secret, house.keyring, person.id)
        return await _show_code(request, secret, wrong, 400)
    return portal_page(request, "portal/account/recovery_codes.html", {"codes": codes})


@refused_on(show_account)
async def remove(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST …/remove`: disable two-factor, after a password check."""
    await check_person(request, form.secret("password"))
    await request[HOUSE].database.write(
        remove_two_factor, staff_of(request).id, actor=actor_of(request)
    )
    return see_other(request, "/account", "second-step-removed")


async def _show_code(
    request: web.Request, secret: bytes, problem: str | None = None, status: int = 200
) -> web.Response:
    venue = await request[HOUSE].database.read(get_venue)
    address = app_address(secret, venue.name, staff_of(request).name)
    values: dict[str, object] = {
        "picture": await asyncio.to_thread(link_svg, address),
        "secret": spell_secret(secret),
        "problem": problem,
    }
    return portal_page(request, "portal/account/second_step.html", values, status)


_own = partial(PortalRoute, role="door", of_the_house=True)
_AT = "/portal/account"

ACCOUNT_ROUTES = (
    _own("GET", _AT, handler=show_account),
    _own("POST", f"{_AT}/password", handler=set_new_password),
    _own("POST", f"{_AT}/second-step", handler=offer),
    _own("POST", f"{_AT}/second-step/confirm", handler=confirm),
    _own("POST", f"{_AT}/second-step/remove", handler=remove),
    _own("POST", f"{_AT}/sessions/end-others", handler=end_others),
    _own("POST", f"{_AT}/sessions/{{id}}/end", handler=end_one),
)
