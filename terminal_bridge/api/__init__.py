"""The routes of the door protocol: method, path, handler (docs/guide/door-protocol.md).

Every handler except `pair` calls `authenticate` first.
"""

from terminal_bridge.api.evening import evening, snapshot
from terminal_bridge.api.live_feed import events
from terminal_bridge.api.offline_scans import acknowledge, sync
from terminal_bridge.api.pairing import me, pair, unpair
from terminal_bridge.api.parties import back, left, no_show, tables, walk_in
from terminal_bridge.api.protocol import check_in_by_hand, scan, undo, undo_by_hand

TERMINAL_ROUTES = (
    ("POST", "/terminal/v1/pair", pair),
    ("POST", "/terminal/v1/unpair", unpair),
    ("GET", "/terminal/v1/me", me),
    ("POST", "/terminal/v1/scans", scan),
    ("POST", "/terminal/v1/scans/{scanId}/undo", undo),
    ("POST", "/terminal/v1/check-ins", check_in_by_hand),
    ("POST", "/terminal/v1/check-ins/{id}/undo", undo_by_hand),
    ("GET", "/terminal/v1/evening", evening),
    ("GET", "/terminal/v1/tables", tables),
    ("POST", "/terminal/v1/walk-ins", walk_in),
    ("POST", "/terminal/v1/reservations/{id}/left", left),
    ("POST", "/terminal/v1/reservations/{id}/no-show", no_show),
    ("POST", "/terminal/v1/reservations/{id}/take-back", back),
    ("GET", "/terminal/v1/snapshot", snapshot),
    ("POST", "/terminal/v1/sync", sync),
    ("GET", "/terminal/v1/events", events),
    ("POST", "/terminal/v1/conflicts/{id}/acknowledge", acknowledge),
)
