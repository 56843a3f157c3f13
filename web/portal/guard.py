"""Who may open a page of the portal: signed in, in time, from our own page, with the role."""

from aiohttp import web
from yarl import URL

from appliance.environment import Environment
from appliance.errors import NotFound, Refusal, Unavailable
from appliance.house_errors import StaffRoleMissing
from appliance.model.booking import parse_uuid
from appliance.model.session import Session
from appliance.model.staff import StaffMember
from appliance.store.sessions import find_session, touch_session
from appliance.tokens import hash_token
from terminal_bridge.context import ENVIRONMENT, STILL_MAY
from terminal_bridge.same_origin import is_from_our_page
from web.context import SERVICES, Services
from web.guest.answer import page
from web.names.secure import SECURE
from web.portal.answer import Declined, problem_page, see_other
from web.portal.context import HOUSE, SESSION
from web.portal.forms import FORM, read_form
from web.portal.navigation import SAFE, Handler, PortalRoute, nearest_page
from web.portal.once import ONCE
from web.portal.session_cookie import session_secret

SIGN_IN = "/portal/sign-in"


def guarded(route: PortalRoute, services: Services, house: Environment) -> Handler:
    """The route's handler behind the guard. Staff belong to `house`, the live environment."""

    async def handle(request: web.Request) -> web.StreamResponse:
        request[ENVIRONMENT] = services.environment
        request[SERVICES] = services
        request[HOUSE] = house
        if not request.app[SECURE].is_private(request):
            return page(request, "portal/insecure.html", {}, status=403)
        session = find_living_session(request, house)
        if session is None:
            return _to_sign_in(request)
        request[SESSION] = session
        try:
            _admit(request, session.person, route.role)
            request[STILL_MAY] = lambda later: _admit_still(later, house, route.role)
            await _touch(house, session)
            if request.method in SAFE:
                return await route.handler(request)
            return await _take_form(request, route)
        except (Refusal, Declined) as refusal:
            return problem_page(request, refusal)

    return handle


async def _take_form(request: web.Request, route: PortalRoute) -> web.StreamResponse:
    """Read the form and do what it asks: once, however often it is sent (hidden field `once`)."""
    form = request[FORM] = await read_form(request, takes_files=route.takes_files)
    token = form.text("once", 64)
    if not token:
        return await route.handler(request)

    async def act() -> web.StreamResponse:
        return await route.handler(request)

    async def show() -> web.StreamResponse:
        return see_other(request, nearest_page(request).partition("/portal")[2])

    subject = f"{request.path} {token}"
    return await request.app[ONCE].answer(request[SESSION].id, subject, act, show)


def find_living_session(request: web.Request, house: Environment) -> Session | None:
    """The session of the request's cookie, unless it is over."""
    secret = session_secret(request)
    if secret is None:
        return None
    session = house.database.peek(find_session, hash_token(secret))
    if session is None or session.is_over(house.database.clock.now()):
        return None
    return session


def staff_of(request: web.Request) -> StaffMember:
    """Who is signed in; only behind the guard."""
    return request[SESSION].person


def actor_of(request: web.Request) -> str:
    """Who does it, as the logs say."""
    return f"staff:{staff_of(request).id}"


def id_of(request: web.Request) -> str:
    """The id in the path; NotFound when it is none."""
    found = parse_uuid(request.match_info["id"])
    if found is None:
        raise NotFound
    return found


def _admit(request: web.Request, person: StaffMember, role: str) -> None:
    if request.method not in SAFE and not is_from_our_page(request, request[HOUSE].links.base):
        raise StaffRoleMissing(role=role)
    if not person.may(role):
        raise StaffRoleMissing(role=role)


def _admit_still(request: web.Request, house: Environment, role: str) -> None:
    session = find_living_session(request, house)
    if session is None or not session.person.may(role):
        raise StaffRoleMissing(role=role)


async def _touch(house: Environment, session: Session) -> None:
    """Note the last use once a minute; a full disk does not lock the portal for that."""
    if session.is_due_for_touch(house.database.clock.now()):
        try:
            await house.database.write(touch_session, session.id)
        except Unavailable:
            return


def _to_sign_in(request: web.Request) -> web.StreamResponse:
    """To the sign-in page, and from there back to where the person wanted to go."""
    wanted = str(request.rel_url) if request.method in SAFE else nearest_page(request)
    target = str(URL(SIGN_IN).with_query({"next": wanted}))
    if "HX-Request" in request.headers:  # the whole page leaves, not a part of it
        return web.Response(status=401, headers={"HX-Redirect": target})
    return web.Response(status=303, headers={"Location": target})
