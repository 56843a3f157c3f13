"""The board's routes."""

from web.portal.route import PortalRoute
from web.portal.tonight.events import board_events
from web.portal.tonight.pages import show_board, show_rows, show_sheet

TONIGHT_ROUTES = (
    PortalRoute("GET", "/portal/tonight", "door", show_board),
    PortalRoute("GET", "/portal/tonight/rows", "door", show_rows),
    PortalRoute("GET", "/portal/tonight/sheet", "door", show_sheet),
    PortalRoute("GET", "/portal/tonight/events", "door", board_events),
)
