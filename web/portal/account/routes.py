"""The routes of one's own account."""

from functools import partial

from web.portal.account import pages, second_step
from web.portal.route import PortalRoute

_own = partial(PortalRoute, role="door", of_the_house=True)
_AT = "/portal/account"

ACCOUNT_ROUTES = (
    _own("GET", _AT, handler=pages.show_account),
    _own("POST", f"{_AT}/password", handler=pages.set_new_password),
    _own("POST", f"{_AT}/second-step", handler=second_step.offer),
    _own("POST", f"{_AT}/second-step/confirm", handler=second_step.confirm),
    _own("POST", f"{_AT}/second-step/remove", handler=second_step.remove),
    _own("POST", f"{_AT}/sessions/end-others", handler=pages.end_others),
    _own("POST", f"{_AT}/sessions/{{id}}/end", handler=pages.end_one),
)
