"""The routes of reservations."""

from web.portal.reservations import doing
from web.portal.reservations.detail import show_reservation
from web.portal.reservations.export import export_list
from web.portal.reservations.held import export_one
from web.portal.reservations.listing import show_list
from web.portal.reservations.new import make_new, show_new
from web.portal.route import PortalRoute

_ONE = "/portal/reservations/{id}"

RESERVATION_ROUTES = (
    PortalRoute("GET", "/portal/reservations", "host", show_list),
    PortalRoute("GET", "/portal/reservations/export.csv", "manager", export_list),
    PortalRoute("GET", "/portal/reservations/new", "host", show_new),
    PortalRoute("POST", "/portal/reservations/new", "host", make_new),
    PortalRoute("GET", _ONE, "door", show_reservation),
    PortalRoute("POST", f"{_ONE}/check-in", "door", doing.check_in_one),
    PortalRoute("POST", f"{_ONE}/undo", "door", doing.undo_one),
    PortalRoute("POST", f"{_ONE}/amend", "host", doing.amend),
    PortalRoute("POST", f"{_ONE}/move", "host", doing.move),
    PortalRoute("POST", f"{_ONE}/late", "host", doing.late),
    PortalRoute("POST", f"{_ONE}/new-code", "host", doing.new_code),
    PortalRoute("POST", f"{_ONE}/cancel", "host", doing.cancel_one),
    PortalRoute("POST", f"{_ONE}/accept", "host", doing.accept_one),
    PortalRoute("POST", f"{_ONE}/decline", "host", doing.decline_one),
    PortalRoute("POST", f"{_ONE}/payment", "host", doing.pay),
    PortalRoute("POST", f"{_ONE}/void", "host", doing.void),
    PortalRoute("POST", f"{_ONE}/erase", "manager", doing.erase_one),
    PortalRoute("GET", f"{_ONE}/held.json", "manager", export_one),
)
