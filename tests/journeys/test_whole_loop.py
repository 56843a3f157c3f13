"""The whole loop over HTTP: a partner books, a guest shows the pass, the door admits."""

import base64
import html
import io
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email import message_from_bytes, policy

import aiohttp
import pytest
from PIL import Image

from tests.journeys.box_process import ENVIRONMENTS, BoxProcess, Founded, found_box
from tests.journeys.partner_side import Caller, Receiver, calling
from tests.qr_codes import qr_codes
from tests.unit.email.mail_servers import Handler, smtp_server

EMAIL, PHONE = "salma.bennani@guests.example", "+212 611 222 333"


@dataclass
class Journey:
    """A running box with its clients in one environment."""

    environment: str
    founded: Founded
    box: BoxProcess
    partner: Caller
    door: Caller
    receiver: Receiver
    mail: Handler

    async def register(self):
        """Register the receiver for all six events; return the endpoint's id."""
        body = {"url": self.receiver.url(self.environment)}
        endpoint = await self.partner.must(201, "POST", "/v1/webhooks", body)
        assert endpoint["secret"].startswith("whsec_")
        self.receiver.secrets[self.environment] = endpoint["secret"]
        return endpoint["id"]

    async def tonight(self):
        return (await self.door.must(200, "GET", "/terminal/v1/me"))["evening"]

    async def a_booking(self, **changes):
        """Return a body that books T1 for tonight's whole evening."""
        tables = (await self.partner.must(200, "GET", "/v1/venue"))["tables"]
        return {
            "tableId": tables[0]["id"],
            "date": await self.tonight(),
            "guests": 2,
            "customer": {"name": "Salma Bennani", "email": EMAIL, "phone": PHONE},
            "externalRef": "PARTNER-7",
            "idempotencyKey": "loop-1",
            **changes,
        }

    async def scan(self, scan_id, code):
        body = {"scanId": scan_id, "code": code}
        return await self.door.must(200, "POST", "/terminal/v1/scans", body)

    async def listed(self, reservation_id):
        items = (await self.partner.must(200, "GET", "/v1/reservations"))["items"]
        return next(item for item in items if item["id"] == reservation_id)

    async def letter(self):
        """Return the text and the QR code picture of the only email."""
        if self.environment == "live":
            (envelope,) = self.mail.envelopes
            assert envelope.rcpt_tos == [EMAIL]
            message = message_from_bytes(envelope.content, policy=policy.default)
            picture, _attached = (p for p in message.walk() if p.get_content_maintype() == "image")
            text = message.get_body(("plain",)).get_content()
            return text, picture.get_payload(decode=True)
        assert self.mail.envelopes == []
        shown = await fetch(f"{self.box.address}/test/outbox")
        (path,) = re.findall(r'href="(/test/outbox/[^"]+)"', shown)
        page = html.unescape(await fetch(self.box.address + path))
        return page, base64.b64decode(re.search(r"data:image/png;base64,([\w+/=]+)", page)[1])


async def fetch(url):
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.status == 200
        return await answer.text()


@asynccontextmanager
async def begun(folder, environment):
    async with Receiver().running() as receiver, smtp_server() as (port, mail):
        settings = receiver.settings | {
            "VENUEBOX_MAIL_HOST": "127.0.0.1",
            "VENUEBOX_MAIL_PORT": str(port),
            "VENUEBOX_MAIL_SECURITY": "none",
            "VENUEBOX_MAIL_SENDER": "tables@riad.example",
        }
        founded = found_box(folder)
        box = BoxProcess(founded.data, log=folder / "box.log", settings=settings)
        with box:
            async with calling(box, founded, environment) as (partner, door):
                yield Journey(environment, founded, box, partner, door, receiver, mail)


@pytest.fixture(params=ENVIRONMENTS)
async def journey(request, tmp_path):
    async with begun(tmp_path, request.param) as found:
        yield found


async def test_a_booking_leads_to_an_arrival_and_the_partner_is_notified(journey):
    partner, receiver = journey.partner, journey.receiver
    await journey.register()
    wish = await journey.a_booking()
    free = await partner.must(200, "GET", f"/v1/availability?date={wish['date']}")
    assert all(table["available"] for table in free["tables"])

    booked = await partner.must(201, "POST", "/v1/reservations", wish)

    assert booked["notifications"] == {"email": "sent", "sms": "skipped"}
    taken = await partner.must(200, "GET", f"/v1/availability?date={wish['date']}")
    assert [t["blockedBy"] for t in taken["tables"]] == ["partner", None, None, None]
    guest_pass = await see_the_pass_everywhere(journey, booked)

    reservation_id = booked["serviceReservationId"]
    created = await receiver.wait_for("reservation.created", reservation_id)
    assert created.reservation["checkedInAt"] is None

    first = await journey.scan("scan-1", guest_pass)
    second = await journey.scan("scan-2", guest_pass)

    assert (first["result"], first["colour"]) == ("checked_in", "green")
    assert (second["result"], second["colour"]) == ("already_checked_in", "amber")
    arrived = await receiver.wait_for("reservation.checked_in", reservation_id)
    item = await journey.listed(reservation_id)
    assert item["checkedInAt"] == arrived.reservation["checkedInAt"] == first["firstCheckIn"]["at"]
    assert item["status"] == arrived.reservation["status"] == "confirmed"

    cancelled = await partner.must(200, "DELETE", f"/v1/reservations/{reservation_id}")

    last = await receiver.wait_for("reservation.cancelled", reservation_id)
    assert cancelled["status"] == last.reservation["status"] == "cancelled"
    assert last.reservation["checkedInAt"] == item["checkedInAt"]
    assert (await journey.scan("scan-3", guest_pass))["result"] == "cancelled"
    freed = await partner.must(200, "GET", f"/v1/availability?date={wish['date']}")
    assert all(table["available"] for table in freed["tables"])
    check_what_arrived(receiver, booked, wish)
    check_the_log(journey)


async def see_the_pass_everywhere(journey, booked):
    """Check that email and guest page show the same pass; return its text."""
    text, picture = await journey.letter()
    page = await fetch(booked["guestAccessUrl"])

    assert booked["accessCode"] in text
    assert booked["guestAccessUrl"] in text
    (code,) = qr_codes(Image.open(io.BytesIO(picture)))
    assert re.fullmatch(r"SVC1[A-Z2-7]{135}", code)
    assert re.search(r'data-pass="([^"]*)"', page)[1] == code
    assert booked["accessCode"] in page
    return code


def check_what_arrived(receiver, booked, wish):
    """Check the deliveries (interface, sections 6.1 and 2.9)."""
    kinds = [one.event for one in receiver.received]
    assert sorted(kinds) == [
        "reservation.cancelled",
        "reservation.checked_in",
        "reservation.created",
    ]
    for one in receiver.received:
        assert one.signature_held
        assert one.delivery == one.body["id"]
        assert one.event == one.body["type"]
        assert one.reservation["accessCode"] == booked["accessCode"]
        assert one.reservation["externalRef"] == wish["externalRef"]
        assert one.reservation["source"] == "partner"
        assert one.reservation["table"]["id"] == wish["tableId"]
    assert len({one.delivery for one in receiver.received}) == 3


def check_the_log(journey):
    """Check that the output contains no secret and no contact data (I10)."""
    said = journey.box.complaints() + "\n".join(journey.box.lines)
    secrets = (*journey.founded.keys.values(), *journey.founded.terminals.values(), EMAIL, PHONE)
    assert [one for one in secrets if one in said] == []


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_a_restart_changes_no_answer_and_pending_deliveries_still_arrive(tmp_path, end):
    async with begun(tmp_path, "live") as journey:
        await journey.register()
        wish = await journey.a_booking(notifyCustomer=False)
        journey.receiver.open.clear()  # it receives deliveries and does not answer
        booked = await journey.partner.must(201, "POST", "/v1/reservations", wish)
        reservation_id = booked["serviceReservationId"]
        undelivered = await journey.receiver.wait_for("reservation.created", reservation_id)

        getattr(journey.box, end)()
        journey.receiver.open.set()
        journey.box.start()

        replayed = await journey.partner.must(200, "POST", "/v1/reservations", wish)
        assert replayed == booked
        assert journey.partner.headers["Idempotent-Replayed"] == "true"
        await journey.receiver.wait_for("reservation.created", reservation_id, times=2)
        again = journey.receiver.found("reservation.created", reservation_id)
        assert [one.delivery for one in again] == [undelivered.delivery] * 2
        assert [one.body for one in again] == [undelivered.body] * 2
        assert all(one.signature_held for one in again)
