"""The portal's routes: method, path, minimum role, handler."""

from web.portal import deliveries, endpoints
from web.portal import integrations as keys
from web.portal.account import ACCOUNT_ROUTES
from web.portal.box import BOX_ROUTES
from web.portal.evening import TONIGHT_ROUTES
from web.portal.first_run import SETUP_ROUTES
from web.portal.navigation import PortalRoute
from web.portal.reservation_list import RESERVATION_ROUTES
from web.portal.sign_in import choose_language, go_home, leave
from web.portal.staff import PEOPLE_ROUTES
from web.portal.terminals import DOOR_ROOM_ROUTES
from web.portal.venue import VENUE_ROUTES

_ROOM = "/portal/integrations"
_KEY, _ENDPOINT = f"{_ROOM}/keys/{{id}}", f"{_ROOM}/endpoints/{{id}}"
_DELIVERY = f"{_ROOM}/deliveries/{{id}}"

INTEGRATION_ROUTES = (
    PortalRoute("GET", _ROOM, "manager", keys.show_overview),
    PortalRoute("GET", f"{_ROOM}/warnings", "manager", keys.show_warnings),
    PortalRoute("GET", f"{_ROOM}/keys", "manager", keys.go_to_overview),
    PortalRoute("GET", f"{_ROOM}/endpoints", "manager", keys.go_to_overview),
    PortalRoute("POST", f"{_ROOM}/keys", "manager", keys.create_key),
    PortalRoute("GET", f"{_ROOM}/keys/new", "manager", keys.new_key),
    PortalRoute("GET", _KEY, "manager", keys.show_key),
    PortalRoute("POST", f"{_KEY}/rotate", "manager", keys.rotate_one),
    PortalRoute("POST", f"{_KEY}/revoke", "manager", keys.revoke_one),
    PortalRoute("POST", f"{_ROOM}/endpoints", "manager", endpoints.create_endpoint),
    PortalRoute("GET", f"{_ROOM}/endpoints/new", "manager", endpoints.new_endpoint),
    PortalRoute("GET", _ENDPOINT, "manager", endpoints.show_endpoint),
    PortalRoute("POST", f"{_ENDPOINT}/activate", "manager", endpoints.activate_one),
    PortalRoute("POST", f"{_ENDPOINT}/deactivate", "manager", endpoints.deactivate_one),
    PortalRoute("POST", f"{_ENDPOINT}/events", "manager", endpoints.choose_for_one),
    PortalRoute("POST", f"{_ENDPOINT}/references", "manager", endpoints.restrict_one),
    PortalRoute("POST", f"{_ENDPOINT}/roll", "manager", endpoints.roll_one),
    PortalRoute("POST", f"{_ENDPOINT}/revoke-old-secret", "manager", endpoints.revoke_old),
    PortalRoute("POST", f"{_ENDPOINT}/trust", "manager", endpoints.trust_one),
    PortalRoute("POST", f"{_ENDPOINT}/test", "manager", endpoints.send_test),
    PortalRoute("GET", f"{_ROOM}/deliveries", "manager", deliveries.show_deliveries),
    PortalRoute("GET", _DELIVERY, "manager", deliveries.show_delivery),
    PortalRoute("POST", f"{_DELIVERY}/replay", "manager", deliveries.replay_one),
    PortalRoute("GET", f"{_ROOM}/replay", "manager", deliveries.ask_replay),
    PortalRoute("POST", f"{_ROOM}/replay", "manager", deliveries.replay_many),
)


PORTAL_ROUTES: tuple[PortalRoute, ...] = (
    PortalRoute("GET", "/portal", "door", go_home),
    PortalRoute("POST", "/portal/sign-out", "door", leave, of_the_house=True),
    PortalRoute("POST", "/portal/language", "door", choose_language, of_the_house=True),
    *TONIGHT_ROUTES,
    *RESERVATION_ROUTES,
    *INTEGRATION_ROUTES,
    *VENUE_ROUTES,
    *DOOR_ROOM_ROUTES,
    *ACCOUNT_ROUTES,
    *PEOPLE_ROUTES,
    *BOX_ROUTES,
    *SETUP_ROUTES,
)
