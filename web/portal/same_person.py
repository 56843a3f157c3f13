"""Whether the one at the browser is still the one who signed in: asked before what is grave."""

from dataclasses import dataclass

from aiohttp import web

from appliance.actions.sign_in import begin_sign_in, right_password
from appliance.errors import Refusal
from web.portal.answer import language_of, refusal_text
from web.portal.context import HOUSE
from web.portal.guard import find_living_session, staff_of
from web.portal.passwords import PASSWORDS
from web.portal.session_cookie import device_secret


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why it is not granted, in the person's language, and the status of the answer."""

    sentence: str
    status: int


async def doubt_person(request: web.Request, password: str) -> Doubt | None:
    """None when `password` is the signed-in person's own. Guesses count as those at the door."""
    house, language = request[HOUSE], language_of(request)
    try:
        attempt = await house.database.write(
            begin_sign_in, staff_of(request).name, device_secret(request)
        )
    except Refusal as refusal:  # guessed too often, by whoever found the browser open
        return Doubt(refusal_text(refusal, language), refusal.status)
    fits = await request.app[PASSWORDS].matches(attempt.password_hash, password)
    if fits and await house.database.write(right_password, attempt) and _is_signed_in(request):
        return None
    return Doubt(language.gettext("The present password is another one."), 400)


def _is_signed_in(request: web.Request) -> bool:
    """Still, and in the same role: comparing a password takes a while."""
    session = find_living_session(request, request[HOUSE])
    return session is not None and session.person.role == staff_of(request).role
