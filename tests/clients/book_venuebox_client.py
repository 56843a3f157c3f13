"""Book with the Python package of the box, using SERVICE_URL, SERVICE_KEY and DATE."""

import os
from datetime import date

from venuebox_client import AuthenticatedClient
from venuebox_client.api.reservations import (
    cancel_reservation,
    create_reservation,
    list_reservations,
)
from venuebox_client.api.venue import get_availability, get_venue
from venuebox_client.api.webhook_endpoints import list_webhooks
from venuebox_client.models import (
    Availability,
    Cancellation,
    CreateReservation,
    CreationResult,
    Customer,
    ReservationPage,
    Venue,
    WebhookEndpointList,
)

day = date.fromisoformat(os.environ["DATE"])
with AuthenticatedClient(os.environ["SERVICE_URL"], os.environ["SERVICE_KEY"]) as client:
    venue = get_venue.sync(client=client)
    assert isinstance(venue, Venue), venue
    slot = venue.slots[0].start
    free = get_availability.sync(client=client, date=day, slot=slot)
    assert isinstance(free, Availability), free
    table = next(table for table in free.tables if table.available)
    wish = CreateReservation(
        table_id=table.id,
        date=day,
        slot=slot,
        guests=2,
        customer=Customer(name="Amina Idrissi", phone="+212 600 000 000"),
        external_ref="venuebox-client",
        idempotency_key="venuebox-client-1",
    )
    booked = create_reservation.sync(client=client, body=wish)
    assert isinstance(booked, CreationResult), booked
    page = list_reservations.sync(client=client, from_=day, to=day)
    assert isinstance(page, ReservationPage), page
    mine = next(item for item in page.items if item.external_ref == "venuebox-client")
    assert mine.created_at < booked.access_link_expires_at
    cancelled = cancel_reservation.sync(
        client=client, id=booked.service_reservation_id, notify_customer=False
    )
    assert isinstance(cancelled, Cancellation), cancelled
    assert isinstance(list_webhooks.sync(client=client), WebhookEndpointList)
