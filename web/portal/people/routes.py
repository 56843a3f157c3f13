"""The routes of the people of the house."""

from functools import partial

from web.portal.people import doing
from web.portal.people.log import show_log
from web.portal.people.pages import show_people
from web.portal.route import PortalRoute

_owners = partial(PortalRoute, role="owner", of_the_house=True)
_AT = "/portal/people"
_ONE = f"{_AT}/{{id}}"

PEOPLE_ROUTES = (
    _owners("GET", _AT, handler=show_people),
    _owners("POST", _AT, handler=doing.invite),
    _owners("GET", f"{_AT}/log", handler=show_log),
    _owners("POST", f"{_ONE}/link", handler=doing.make_link),
    _owners("POST", f"{_ONE}/role", handler=doing.set_role),
    _owners("POST", f"{_ONE}/disable", handler=doing.disable),
    _owners("POST", f"{_ONE}/enable", handler=doing.enable),
    _owners("POST", f"{_ONE}/unlock", handler=doing.unlock_one),
    _owners("POST", f"{_ONE}/second-step/remove", handler=doing.remove_second_step_of),
    _owners("POST", f"{_ONE}/sign-out", handler=doing.sign_out_one),
)
