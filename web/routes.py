"""The partner API's routes: method, path, scope, handler (interface, section 4)."""

from dataclasses import dataclass

from appliance.http.request import Handler
from web.api.reservations import cancel_reservation, create_reservation, list_reservations
from web.api.venue import show_availability, show_venue
from web.api.webhooks import create_webhook, delete_webhook, list_webhooks, send_test_webhook


@dataclass(frozen=True, slots=True)
class Route:
    """A call of the partner API, relative to the environment's base URL."""

    method: str
    path: str
    scope: str
    handler: Handler
    operation_id: str


PARTNER_ROUTE_TABLE: tuple[Route, ...] = (
    Route("GET", "/v1/venue", "venue:read", show_venue, "getVenue"),
    Route("GET", "/v1/availability", "availability:read", show_availability, "getAvailability"),
    Route("GET", "/v1/reservations", "reservations:read", list_reservations, "listReservations"),
    Route("POST", "/v1/reservations", "reservations:write", create_reservation, "createReservation"),  # noqa: E501 - one line per route
    Route("DELETE", "/v1/reservations/{id}", "reservations:write", cancel_reservation, "cancelReservation"),  # noqa: E501
    Route("GET", "/v1/webhooks", "webhooks:manage", list_webhooks, "listWebhooks"),
    Route("POST", "/v1/webhooks", "webhooks:manage", create_webhook, "createWebhook"),
    Route("DELETE", "/v1/webhooks/{id}", "webhooks:manage", delete_webhook, "deleteWebhook"),
    Route("POST", "/v1/webhooks/test", "webhooks:manage", send_test_webhook, "testWebhook"),
)  # fmt: skip
