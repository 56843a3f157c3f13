"""Book with the Python client of openapi-generator, using SERVICE_URL, SERVICE_KEY and DATE."""

import os
from datetime import date

from openapi_client import (
    ApiClient,
    Configuration,
    CreateReservation,
    Customer,
    ReservationsApi,
    VenueApi,
    WebhookEndpointsApi,
)

day = date.fromisoformat(os.environ["DATE"])
server = Configuration(host=os.environ["SERVICE_URL"], access_token=os.environ["SERVICE_KEY"])
with ApiClient(server) as api:
    venue = VenueApi(api).get_venue()
    slot = venue.slots[0].start
    free = VenueApi(api).get_availability(var_date=day, slot=slot)
    table = next(table for table in free.tables if table.available)
    wish = CreateReservation(
        tableId=table.id,
        date=day,
        slot=slot,
        guests=2,
        customer=Customer(name="Amina Idrissi", email="amina@example.com", language="en"),
        externalRef="openapi-generator",
        idempotencyKey="openapi-generator-1",
    )
    booked = ReservationsApi(api).create_reservation(wish)
    page = ReservationsApi(api).list_reservations(var_from=day, to=day)
    mine = next(item for item in page.items if item.external_ref == "openapi-generator")
    assert mine.id == booked.service_reservation_id
    assert mine.created_at < booked.access_link_expires_at
    ReservationsApi(api).cancel_reservation(booked.service_reservation_id, notify_customer=False)
    assert WebhookEndpointsApi(api).list_webhooks().events
