"""`/portal/account`: everybody's own sessions, password and language."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from aiohttp import web

from appliance.actions.manage_staff import end_session
from appliance.actions.sign_in import change_password
from appliance.i18n import Language
from appliance.model.booking import parse_uuid
from appliance.model.staff import PASSWORD_MAX, PASSWORD_MIN
from appliance.store.connection import Reader
from appliance.store.second_steps import count_recovery_codes, find_second_step
from appliance.store.sessions import delete_other_sessions, list_sessions
from appliance.store.venue import get_venue
from web.portal.answer import language_of, portal_page, see_other
from web.portal.context import HOUSE, SESSION
from web.portal.forms import read_form
from web.portal.guard import staff_of
from web.portal.new_password import password_problem
from web.portal.passwords import PASSWORDS
from web.portal.same_person import doubt_person
from web.portal.session_cookie import forget_session


async def show_account(request: web.Request) -> web.Response:
    """`GET /portal/account`."""
    return await account_page(request)


async def end_one(request: web.Request) -> web.StreamResponse:
    """`POST /portal/account/sessions/{id}/end`: another browser is signed out at once."""
    person, session_id = staff_of(request), parse_uuid(request.match_info["id"]) or ""
    await request[HOUSE].database.write(
        end_session, person.id, session_id, actor=f"staff:{person.id}"
    )
    return see_other(request, "/account", "session-ended")


async def end_others(request: web.Request) -> web.StreamResponse:
    """`POST /portal/account/sessions/end-others`: only this browser stays signed in."""
    session = request[SESSION]
    await request[HOUSE].database.write(delete_other_sessions, session.person.id, session.id)
    return see_other(request, "/account", "session-ended")


async def set_new_password(request: web.Request) -> web.StreamResponse:
    """`POST /portal/account/password`: every session ends, this one too."""
    form, person, house = await read_form(request), staff_of(request), request[HOUSE]
    language, wanted = language_of(request), form.secret("new")
    doubt = await doubt_person(request, form.secret("password"))
    if doubt is not None:
        return await account_page(request, doubt.sentence, doubt.status)
    venue = (await house.database.read(get_venue)).name
    problem = password_problem(wanted, (person.name, venue), language)
    if problem is not None:
        return await account_page(request, problem, 400)
    hashed = await request.app[PASSWORDS].hash(wanted)
    await house.database.write(change_password, person.id, hashed, session_id=request[SESSION].id)
    response = web.Response(
        status=303, headers={"Location": "/portal/sign-in?note=password-changed"}
    )
    forget_session(response)
    return response


async def account_page(
    request: web.Request, problem: str | None = None, status: int = 200
) -> web.Response:
    """Everything about the one who is signed in, and what was declined."""
    house, language, person = request[HOUSE], language_of(request), staff_of(request)
    sessions = await house.database.read(list_sessions, person.id)
    second = await house.database.read(find_second_step, person.id)
    zone = await house.database.read(find_zone)
    now = house.database.clock.now()
    values: dict[str, object] = {
        "sessions": [
            (s, moment(s.created_at, zone, language), moment(s.seen_at, zone, language))
            for s in sessions
            if not s.is_over(now)
        ],
        "own": request[SESSION].id,
        "problem": problem,
        "second_since": moment(second.since, zone, language) if second else "",
        "codes_left": await house.database.read(count_recovery_codes, person.id),
        "shortest": PASSWORD_MIN,
        "longest": PASSWORD_MAX,
    }
    return portal_page(request, "portal/account/page.html", values, status)


def find_zone(reader: Reader) -> ZoneInfo:
    """In which time the venue lives."""
    return reader.zones.zone(get_venue(reader).time_zone)


def moment(at: int | None, zone: ZoneInfo, language: Language) -> str:
    """`sam. 21 nov. 19:05`, in venue time; an empty text for None."""
    if at is None:
        return ""
    then = datetime.fromtimestamp(at / 1000, UTC).astimezone(zone)
    return f"{language.short_date(then.date())} {then:%H:%M}"
