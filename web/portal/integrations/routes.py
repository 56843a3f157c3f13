"""The routes of integrations."""

from web.portal.integrations import deliveries, endpoints, keys
from web.portal.navigation import PortalRoute

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
