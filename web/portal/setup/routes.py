"""The routes of the first start, behind its first page."""

from functools import partial

from web.portal.route import PortalRoute
from web.portal.setup import outside, room
from web.portal.setup.progress import leave_for_later, show_ready

_owners = partial(PortalRoute, role="owner", of_the_house=True)
_AT = "/portal/setup"

SETUP_ROUTES = (
    _owners("GET", f"{_AT}/venue", handler=room.show_venue),
    _owners("POST", f"{_AT}/venue", handler=room.save_venue),
    _owners("GET", f"{_AT}/tables", handler=room.show_tables),
    _owners("POST", f"{_AT}/tables", handler=room.save_tables),
    _owners("GET", f"{_AT}/slots", handler=room.show_slots),
    _owners("POST", f"{_AT}/slots", handler=room.save_slot),
    _owners("POST", f"{_AT}/slots/done", handler=room.pass_slots),
    _owners("GET", f"{_AT}/mail", handler=outside.show_mail),
    _owners("POST", f"{_AT}/mail", handler=outside.save_mail),
    _owners("GET", f"{_AT}/address", handler=outside.show_address),
    _owners("POST", f"{_AT}/address", handler=outside.save_address),
    _owners("GET", f"{_AT}/phone", handler=outside.show_phone),
    _owners("POST", f"{_AT}/phone", handler=outside.pair_phone),
    _owners("POST", f"{_AT}/later", handler=leave_for_later),
    _owners("GET", f"{_AT}/ready", handler=show_ready),
)
