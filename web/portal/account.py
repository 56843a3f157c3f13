"""The page `/portal/account`: a staff member's own sessions, password and two-factor sign-in."""

import asyncio

from aiohttp import web

from appliance.core.qr import qr_svg
from appliance.staff.accounts import end_session
from appliance.staff.model import PASSWORD_MAX, PASSWORD_MIN
from appliance.staff.sign_in import change_password, delete_sessions, list_sessions
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
from appliance.venue.model import get_venue
from web.portal.cookies import LIVE, SESSION, signed_out
from web.portal.forms import Form
from web.portal.guard import hash_new_password, id_of, reauthenticate, staff_of, write_as_staff
from web.portal.responses import language_of, portal_page, see_other


async def show_account(request: web.Request) -> web.Response:
    """`GET /portal/account`: show the signed-in staff member's own account."""
    database, person = request[LIVE].database, staff_of(request)
    sessions = await database.read(list_sessions, person.id)
    values = {
        "sessions": [s for s in sessions if not s.is_over(database.clock.now())],
        "own": request[SESSION].id,
        "second": await database.read(find_two_factor, person.id),
        "codes_left": await database.read(count_recovery_codes, person.id),
        "shortest": PASSWORD_MIN,
        "longest": PASSWORD_MAX,
    }
    return portal_page(request, "portal/account/page.html", values)


async def end_one(request: web.Request, _form: Form) -> web.StreamResponse:
    """`POST /portal/account/sessions/{id}/end`: sign out one of the account's browsers."""
    await write_as_staff(request, end_session, staff_of(request).id, id_of(request))
    return see_other(request, "/account", "session-ended")


async def end_others(request: web.Request, _form: Form) -> web.StreamResponse:
    """`POST /portal/account/sessions/end-others`: sign out all browsers except this one."""
    session = request[SESSION]
    await request[LIVE].database.write(delete_sessions, session.person.id, session.id)
    return see_other(request, "/account", "session-ended")


async def set_new_password(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/account/password`: change the password and end all sessions of the account."""
    person, database = staff_of(request), request[LIVE].database
    await reauthenticate(request, form.secret("password"))
    venue = await database.read(get_venue)
    hashed = await hash_new_password(
        request, form.secret("new"), (person.name, venue.name, venue.address or "")
    )
    await database.write(change_password, person.id, hashed, session_id=request[SESSION].id)
    return signed_out(request, "password-changed")


async def offer(request: web.Request, form: Form) -> web.Response:
    """`POST …/second-step`: check the password and show the QR code for two-factor sign-in."""
    await reauthenticate(request, form.secret("password"))
    live = request[LIVE]
    secret = await live.database.write(offer_two_factor, live.keyring, staff_of(request).id)
    return await _show_code(request, secret)


async def confirm(request: web.Request, form: Form) -> web.Response:
    """`POST …/second-step/confirm`: enable two-factor sign-in and show the recovery codes once."""
    live, person = request[LIVE], staff_of(request)
    codes = await live.database.write(
        confirm_two_factor, live.keyring, person.id, form.text("code")
    )
    if codes is None:
        wrong = language_of(request).gettext(
            "Wrong code. Wait for the next one, and check the time on your phone."
        )
        secret = await live.database.read(offered_secret, live.keyring, person.id)
        return await _show_code(request, secret, wrong, 400)
    return portal_page(request, "portal/account/recovery_codes.html", {"codes": codes})


async def remove(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST …/second-step/remove`: check the password and disable two-factor sign-in."""
    await reauthenticate(request, form.secret("password"))
    await write_as_staff(request, remove_two_factor, staff_of(request).id)
    return see_other(request, "/account", "second-step-removed")


async def _show_code(
    request: web.Request, secret: bytes, problem: str | None = None, status: int = 200
) -> web.Response:
    venue = await request[LIVE].database.read(get_venue)
    address = app_address(secret, venue.name, staff_of(request).name)
    values = {
        "picture": await asyncio.to_thread(qr_svg, address, "L"),
        "secret": spell_secret(secret),
        "problem": problem,
    }
    return portal_page(request, "portal/account/second_step.html", values, status)
