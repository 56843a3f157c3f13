"""`/portal/account/second-step`: an authenticator app, and its recovery codes."""

import asyncio

from aiohttp import web

from appliance.actions.second_step import (
    confirm_second_step,
    offer_second_step,
    offered_secret,
    remove_second_step,
)
from appliance.errors import Refusal
from appliance.model.qr import link_svg
from appliance.model.totp import app_address, spell_secret
from appliance.store.venue import get_venue
from web.portal.account.pages import account_page
from web.portal.answer import language_of, portal_page, refusal_text, see_other
from web.portal.context import HOUSE
from web.portal.forms import read_form
from web.portal.guard import staff_of
from web.portal.same_person import doubt_person


async def offer(request: web.Request) -> web.Response:
    """`POST /portal/account/second-step`: the QR code, to who says the password."""
    form, house, person = await read_form(request), request[HOUSE], staff_of(request)
    doubt = await doubt_person(request, form.secret("password"))
    if doubt is not None:
        return await account_page(request, doubt.sentence, doubt.status)
    try:
        secret = await house.database.write(offer_second_step, house.keyring, person.id)
    except Refusal as refusal:
        return await _declined(request, refusal)
    return await _show(request, secret)


async def confirm(request: web.Request) -> web.Response:
    """`POST …/confirm`: a right code puts it in force; the recovery codes are shown this once."""
    form, house, person = await read_form(request), request[HOUSE], staff_of(request)
    try:
        codes = await house.database.write(
            confirm_second_step, house.keyring, person.id, form.text("code")
        )
        if codes is None:
            secret = await house.database.read(offered_secret, house.keyring, person.id)
    except Refusal as refusal:
        return await _declined(request, refusal)
    if codes is None:
        wrong = language_of(request).gettext(
            "This code does not fit. Wait for the next one; is the time of the phone right?"
        )
        return await _show(request, secret, wrong, 400)
    return portal_page(request, "portal/account/recovery_codes.html", {"codes": codes})


async def remove(request: web.Request) -> web.StreamResponse:
    """`POST …/remove`: the password alone, to who says it."""
    form, person = await read_form(request), staff_of(request)
    doubt = await doubt_person(request, form.secret("password"))
    if doubt is not None:
        return await account_page(request, doubt.sentence, doubt.status)
    await request[HOUSE].database.write(remove_second_step, person.id, actor=f"staff:{person.id}")
    return see_other(request, "/account", "second-step-removed")


async def _declined(request: web.Request, refusal: Refusal) -> web.Response:
    return await account_page(request, refusal_text(refusal, language_of(request)), refusal.status)


async def _show(
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
