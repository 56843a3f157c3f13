"""The routes of the door's room."""

from web.portal.door import export, keys, log, pairing, terminals
from web.portal.route import PortalRoute

_ROOM = "/portal/door"

DOOR_ROOM_ROUTES = (
    PortalRoute("GET", _ROOM, "manager", terminals.show_door),
    PortalRoute("POST", f"{_ROOM}/pair", "manager", pairing.offer),
    PortalRoute("GET", f"{_ROOM}/pairings/{{mark}}", "manager", pairing.show_state),
    PortalRoute("POST", f"{_ROOM}/issue", "manager", pairing.issue),
    PortalRoute("GET", f"{_ROOM}/terminals/{{id}}", "manager", terminals.show_terminal),
    PortalRoute("POST", f"{_ROOM}/terminals/{{id}}", "manager", terminals.edit),
    PortalRoute("POST", f"{_ROOM}/terminals/{{id}}/revoke", "manager", terminals.revoke),
    PortalRoute("POST", f"{_ROOM}/conflicts/{{id}}/acknowledge", "manager", terminals.acknowledge),
    PortalRoute("GET", f"{_ROOM}/log", "manager", log.show_log),
    PortalRoute("GET", f"{_ROOM}/log/check", "manager", log.check_log),
    PortalRoute("GET", f"{_ROOM}/log/export", "manager", export.export_log),
    PortalRoute("GET", f"{_ROOM}/keys", "manager", keys.show_keys),
    PortalRoute("POST", f"{_ROOM}/keys/rotate", "manager", keys.rotate),
    PortalRoute("POST", f"{_ROOM}/keys/leaked", "owner", keys.replace_leaked),
)
