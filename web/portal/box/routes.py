"""The routes of the box's own room."""

from functools import partial

from web.portal.box import clock, doing
from web.portal.box.pages import show_backups, show_box
from web.portal.route import PortalRoute

_of_the_house = partial(PortalRoute, of_the_house=True)
_AT = "/portal/box"

BOX_ROUTES = (
    _of_the_house("GET", _AT, "manager", show_box),
    _of_the_house("GET", f"{_AT}/backup", "manager", show_backups),
    _of_the_house("POST", f"{_AT}/backup", "manager", doing.back_up),
    _of_the_house("POST", f"{_AT}/clock", "owner", clock.confirm),
    _of_the_house("POST", f"{_AT}/recovery-kit", "owner", doing.show_recovery_kit),
    _of_the_house("POST", f"{_AT}/settings", "owner", doing.change_settings),
    _of_the_house("POST", f"{_AT}/test-letter", "manager", doing.send_test_letter),
    _of_the_house("POST", f"{_AT}/restart", "owner", doing.restart),
)
