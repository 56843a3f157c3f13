"""The routes of the partner API (interface, section 4) and the guest pages."""

from dataclasses import dataclass

from appliance.http.request import Handler
from web.api.events import show_events
from web.api.reservations import (
    cancel_reservation,
    change_reservation,
    create_hold,
    create_reservation,
    delete_hold,
    list_reservations,
    show_reservation,
)
from web.api.venue import show_availability, show_key, show_range, show_venue
from web.api.webhooks import (
    change_webhook,
    create_webhook,
    delete_webhook,
    list_deliveries,
    list_webhooks,
    replay_webhook,
    roll_webhook,
    send_test_webhook,
    show_delivery,
    show_webhook,
)
from web.guest.access import access_page, pass_picture, send_calendar, service_worker
from web.guest.book import booked_page, booking_page, send_booking
from web.guest.changes import cancel_page, change_page
from web.guest.my_reservations import (
    claim_page,
    erase_mine,
    forget_all,
    my_data,
    my_reservation,
    my_reservations,
    no_reminders,
)


@dataclass(frozen=True, slots=True)
class Route:
    """A partner API call. `path` is relative to the environment's base URL.

    Every key has the scope "". `budget` is the rate that the call counts against.
    """

    method: str
    path: str
    scope: str
    handler: Handler
    operation_id: str
    budget: str = "key"


PARTNER_ROUTE_TABLE: tuple[Route, ...] = (
    Route("GET", "/v1/venue", "venue:read", show_venue, "getVenue"),
    Route("GET", "/v1/key", "", show_key, "getKey"),
    Route("GET", "/v1/availability", "availability:read", show_availability, "getAvailability"),
    Route("GET", "/v1/availability/range", "availability:read", show_range, "getAvailabilityRange"),
    Route("GET", "/v1/reservations", "reservations:read", list_reservations, "listReservations"),
    Route("POST", "/v1/reservations", "reservations:write", create_reservation, "createReservation"),  # noqa: E501 - one line per route
    Route("GET", "/v1/reservations/{id}", "reservations:read", show_reservation, "getReservation"),
    Route("PATCH", "/v1/reservations/{id}", "reservations:write", change_reservation, "changeReservation"),  # noqa: E501
    Route("DELETE", "/v1/reservations/{id}", "reservations:write", cancel_reservation, "cancelReservation"),  # noqa: E501
    Route("GET", "/v1/events", "reservations:read", show_events, "listEvents"),
    Route("POST", "/v1/holds", "reservations:write", create_hold, "createHold"),
    Route("DELETE", "/v1/holds/{id}", "reservations:write", delete_hold, "deleteHold"),
    Route("GET", "/v1/webhooks", "webhooks:manage", list_webhooks, "listWebhooks"),
    Route("POST", "/v1/webhooks", "webhooks:manage", create_webhook, "createWebhook"),
    Route("GET", "/v1/webhooks/{id}", "webhooks:manage", show_webhook, "getWebhook"),
    Route("PATCH", "/v1/webhooks/{id}", "webhooks:manage", change_webhook, "changeWebhook"),
    Route("POST", "/v1/webhooks/{id}/roll", "webhooks:manage", roll_webhook, "rollWebhook"),
    Route("DELETE", "/v1/webhooks/{id}", "webhooks:manage", delete_webhook, "deleteWebhook"),
    Route("POST", "/v1/webhooks/test", "webhooks:manage", send_test_webhook, "testWebhook"),
    Route("GET", "/v1/webhooks/{id}/deliveries", "webhooks:manage", list_deliveries, "listDeliveries", "deliveries"),  # noqa: E501
    Route("GET", "/v1/webhooks/{id}/deliveries/{delivery}", "webhooks:manage", show_delivery, "getDelivery", "deliveries"),  # noqa: E501
    Route("POST", "/v1/webhooks/{id}/replay", "webhooks:manage", replay_webhook, "replayWebhook", "deliveries"),  # noqa: E501
)  # fmt: skip

# `{token:.*}` matches any text, so that a damaged link also shows the guests' error page.
GUEST_ROUTES = (
    ("GET", "/access/service-worker.js", service_worker),
    ("GET", "/access/{token}/calendar.ics", send_calendar),
    ("GET", "/access/{token}/pass.png", pass_picture),
    ("GET", "/access/{token}/change", change_page),
    ("POST", "/access/{token}/change", change_page),
    ("GET", "/access/{token}/cancel", cancel_page),
    ("POST", "/access/{token}/cancel", cancel_page),
    ("GET", "/access/{token:.*}", access_page),
    ("GET", "/claim-guest/{token}/cancel", cancel_page),
    ("POST", "/claim-guest/{token}/cancel", cancel_page),
    ("GET", "/claim-guest/{token:.*}", claim_page),
    ("POST", "/claim-guest/{token:.*}", claim_page),
    ("GET", "/me", my_reservations),
    ("POST", "/me/forget", forget_all),
    ("GET", "/me/{id}", my_reservation),
    ("POST", "/me/{id}", my_reservation),
    ("GET", "/me/{id}/data.json", my_data),
    ("POST", "/me/{id}/erasure", erase_mine),
    ("GET", "/book", booking_page),
    ("POST", "/book", send_booking),
    ("GET", "/book/{token}", booked_page),
    ("GET", "/no-reminders/{token:.*}", no_reminders),
    ("POST", "/no-reminders/{token:.*}", no_reminders),
)
