"""Send and read bookings with the models of datamodel-code-generator, which makes no client."""

import json
import os
import urllib.request
from pathlib import Path

from partner_models import (
    Availability,
    CreateReservation,
    CreationResult,
    Customer,
    Event,
    ReservationPage,
    Venue,
    VenueEvent,
)

BASE, DATE = os.environ["SERVICE_URL"], os.environ["DATE"]


def call(method: str, path: str, body: str | None = None) -> bytes:
    headers = {
        "Authorization": f"Bearer {os.environ['SERVICE_KEY']}",
        "Content-Type": "application/json",
    }
    data = None if body is None else body.encode()
    request = urllib.request.Request(BASE + path, data, headers, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=15) as answer:  # noqa: S310
        return bytes(answer.read())


venue = Venue.model_validate_json(call("GET", "/v1/venue"))
slot = venue.slots[0].start
free = Availability.model_validate_json(call("GET", f"/v1/availability?date={DATE}&slot={slot}"))
table = next(table for table in free.tables if table.available)
wish = CreateReservation(
    tableId=table.id,
    date=free.date,
    slot=slot,
    guests=2,
    customer=Customer(name="Amina Idrissi", phone="+212 600 000 000"),
    externalRef="datamodel-code-generator",
    idempotencyKey="datamodel-code-generator-1",
)
booked = CreationResult.model_validate_json(
    call("POST", "/v1/reservations", wish.model_dump_json(exclude_none=True))
)
page = ReservationPage.model_validate_json(call("GET", f"/v1/reservations?from={DATE}&to={DATE}"))
assert any(item.id == booked.serviceReservationId for item in page.items)
call("DELETE", f"/v1/reservations/{booked.serviceReservationId}")
document = json.loads(Path(os.environ["DOCUMENT"]).read_text("utf-8"))
callbacks = document["paths"]["/v1/webhooks"]["post"]["callbacks"]
for callback in callbacks.values():
    content = callback["{$request.body#/url}"]["post"]["requestBody"]["content"]["application/json"]
    named = content["schema"]["$ref"].rpartition("/")[2]
    if named == "VenueEvent":
        VenueEvent.model_validate(content["example"])
    else:
        Event.model_validate(content["example"])
