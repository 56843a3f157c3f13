"""The routes of the venue's room."""

from web.portal.route import PortalRoute
from web.portal.venue import closings, rules, slots, tables

_ROOM = "/portal/venue"

VENUE_ROUTES = (
    PortalRoute("GET", _ROOM, "manager", tables.show_tables),
    PortalRoute("POST", f"{_ROOM}/preview", "manager", tables.preview),
    PortalRoute("POST", f"{_ROOM}/tables", "manager", tables.add),
    PortalRoute("POST", f"{_ROOM}/move", "manager", tables.move),
    PortalRoute("POST", f"{_ROOM}/order", "manager", tables.put_in_order),
    PortalRoute("POST", f"{_ROOM}/copy-live", "manager", tables.copy_live),
    PortalRoute("GET", f"{_ROOM}/tables/{{id}}", "manager", tables.show_table),
    PortalRoute("POST", f"{_ROOM}/tables/{{id}}", "manager", tables.edit),
    PortalRoute("POST", f"{_ROOM}/tables/{{id}}/remove", "manager", tables.remove),
    PortalRoute("GET", f"{_ROOM}/slots", "manager", slots.show_slots),
    PortalRoute("POST", f"{_ROOM}/slots", "manager", slots.add),
    PortalRoute("GET", f"{_ROOM}/slots/{{id}}", "manager", slots.show_slot),
    PortalRoute("POST", f"{_ROOM}/slots/{{id}}", "manager", slots.edit),
    PortalRoute("POST", f"{_ROOM}/slots/{{id}}/remove", "manager", slots.remove),
    PortalRoute("GET", f"{_ROOM}/closings", "manager", closings.show_closings),
    PortalRoute("POST", f"{_ROOM}/closings", "manager", closings.close),
    PortalRoute("POST", f"{_ROOM}/closings/{{id}}/remove", "manager", closings.reopen),
    PortalRoute("GET", f"{_ROOM}/rules", "manager", rules.show_rules),
    PortalRoute("POST", f"{_ROOM}/rules", "manager", rules.save_rules),
    PortalRoute("POST", f"{_ROOM}/policies", "manager", rules.save_policies),
)
