"""The portal on one screen: the rooms, each with its routes (method, path, least role, handler)."""

from web.portal.account import ACCOUNT_ROUTES
from web.portal.box.doing import BOX_ROUTES
from web.portal.door.terminals import DOOR_ROOM_ROUTES
from web.portal.integrations.routes import INTEGRATION_ROUTES
from web.portal.navigation import PortalRoute
from web.portal.people import PEOPLE_ROUTES
from web.portal.reservations.list import RESERVATION_ROUTES
from web.portal.setup import SETUP_ROUTES
from web.portal.sign_in import choose_language, go_home, leave
from web.portal.tonight import TONIGHT_ROUTES
from web.portal.venue import VENUE_ROUTES

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
