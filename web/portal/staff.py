"""The page `/portal/people`: staff accounts and the audit log."""

from aiohttp import web

from appliance.api_keys import list_keys
from appliance.core.errors import NameTaken, NotFound
from appliance.core.tokens import account_hash
from appliance.database.connection import Reader
from appliance.environment import public_base, staff_base, trust_page
from appliance.reservations.rows import staff_names
from appliance.staff.accounts import Invitation, change_role, create_staff, invite_again
from appliance.staff.audit_log import AUDIT_DAYS, list_audit_entries
from appliance.staff.model import ROLES, find_staff, list_locked, list_open_invitations, list_staff
from appliance.staff.sign_in import FREE_TRIES, count_sessions
from appliance.staff.two_factor import list_two_factor, remove_two_factor
from web.portal.cookies import BOX, LIVE
from web.portal.forms import Form, number_parameter
from web.portal.guard import id_of, staff_of, write_as_staff
from web.portal.responses import portal_page, see_other

_PAGE = 100


async def show_log(request: web.Request) -> web.Response:
    """`GET /portal/people/log`: show the audit log, newest entries first.

    `?environment=test` shows the test environment's log.
    """
    box = request.app[BOX]
    of_test = request.query.get("environment") == "test"
    database = (box.test if of_test else box.live).database

    def read(reader: Reader) -> dict[str, object]:
        found = list_audit_entries(reader, _PAGE + 1, before=number_parameter(request, "before"))
        return {
            "entries": found[:_PAGE],
            "next": found[_PAGE - 1].seq if len(found) > _PAGE else None,
            "names": {key.id: key.name for key in list_keys(reader)} | names,
        }

    names = await request[LIVE].database.read(staff_names)
    values = {
        **await database.read(read),
        "of_test": of_test,
        "days": AUDIT_DAYS,
    }
    return portal_page(request, "portal/people/log.html", values)


async def show_people(
    request: web.Request, link: tuple[str, Invitation] | None = None
) -> web.Response:
    """`GET /portal/people`: list all staff accounts.

    `link` contains the name of a staff member and their new invitation, which is shown once. If a
    form about one account is rejected, the error is shown on that account's card.
    """
    live = request[LIVE]
    inside = staff_base(live.links, live.settings.server)
    values = {
        **await live.database.read(_read_people),
        "roles": ROLES,
        "link": link and (link[0], f"/portal/welcome#{link[1].secret}"),
        "inside": inside,
        "outside": public_base(live.links, live.settings.server),
        "trust": trust_page(live.links, inside),
        "declined": request.match_info.get("id"),
    }
    if "id" in request.match_info:
        values["wrong"] = {}
    return portal_page(request, "portal/people/page.html", values)


async def invite(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST /portal/people`: create an account and show its invitation link once."""
    name, role = form.name(), form.one_of("role", ROLES)
    try:
        made = await write_as_staff(request, create_staff, name, role)
    except NameTaken as refusal:
        refusal.field = "name"
        raise
    return await show_people(request, (name, made))


async def make_link(request: web.Request, _form: Form) -> web.StreamResponse:
    """`POST …/link`: create a link for setting a new password and show it once."""
    person_id = id_of(request)
    person = await request[LIVE].database.read(find_staff, person_id)
    made = await write_as_staff(request, invite_again, person_id)
    return await show_people(request, (person.name if person else "", made))


async def set_role(request: web.Request, form: Form) -> web.StreamResponse:
    """`POST …/role`: change a staff member's role, starting with their next request."""
    seen, role = form.text("seen"), form.one_of("role", ROLES)
    await write_as_staff(request, change_role, id_of(request), seen, role)
    return see_other(request, "/people", "saved")


async def remove_two_factor_of(request: web.Request, _form: Form) -> web.StreamResponse:
    """`POST …/second-step/remove`: disable two-factor sign-in for another staff member."""
    if id_of(request) == staff_of(request).id:
        raise NotFound
    await write_as_staff(request, remove_two_factor, id_of(request))
    return see_other(request, "/people", "saved")


def _read_people(reader: Reader) -> dict[str, object]:
    people = list_staff(reader)
    accounts = {p.id: account_hash(p.name) for p in people}
    return {
        "people": people,
        "locked": list_locked(reader, accounts, FREE_TRIES),
        "links": list_open_invitations(reader),
        "sessions": count_sessions(reader),
        "second_steps": list_two_factor(reader),
    }
