"""Staff send the guest the pass, or notify the guest of a cancellation."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from appliance.email.rendering import render_email
from tests.app.portal.people import a_person
from tests.app.portal.seating import an_amendment, as_it_is, path_of, rows, seat
from tests.builders import a_body

EMAILS = "SELECT kind, recipient, words FROM email ORDER BY id"


async def send(person, running, reservation, what, **form):
    now = await as_it_is(running, reservation)
    return await person.post(path_of(reservation, what), {"seen": now.version, **form})


async def test_staff_can_send_the_pass_of_every_reservation_to_its_guest(running, host):
    _, body, _ = await running.call("POST", "/v1/reservations", json=a_body())
    _, page, _ = await host.get(f"/portal/reservations/{body['serviceReservationId']}")

    link = re.search(r'id="pass-link" hidden>([^<]+)<', page)[1]
    assert link == body["guestAccessUrl"]
    message = urlsplit(
        re.search(r'href="(https://wa.me/[^"]+[?][^"]+)"', page)[1].replace("&amp;", "&")
    )
    assert message.path == "/212600000001"
    assert link in parse_qs(message.query)["text"][0]
    picture = re.search(r'<img src="([^"]+)"', page)[1]
    async with running.client.get(picture) as answer:
        assert (answer.status, answer.content_type) == (200, "image/png")


async def test_the_pass_is_sent_to_an_email_address_that_was_just_added(running, host):
    salma = await seat(running, customer_email=None)

    status, _, _ = await send(host, running, salma, "send-pass", email="s@example.com")

    assert status == 303
    assert (await as_it_is(running, salma)).customer_email == "s@example.com"
    assert await rows(running, EMAILS) == [("confirmation", "s@example.com", None)]
    status, page, _ = await send(host, running, salma, "send-pass", email="a@b")
    assert status == 400
    assert 'value="a@b"' in page


async def test_staff_can_send_the_pass_even_if_the_partner_sends_its_own_emails(running, host):
    body = a_body(notifyCustomer=False, customer={"name": "Salma", "email": "s@example.com"})
    _, made, _ = await running.call("POST", "/v1/reservations", json=body)
    path = f"/portal/reservations/{made['serviceReservationId']}/send-pass"

    assert (await host.post(path, {"seen": 1, "email": "s@example.com"}))[0] == 303
    assert await rows(running, EMAILS) == [("confirmation", "s@example.com", None)]


async def test_sending_the_pass_is_offered_again_after_a_contact_was_added(running, host):
    salma = await seat(running, customer_email=None)
    in_drawer = {"HX-Request": "true", "HX-Current-URL": "http://box/portal/tonight"}
    _, page, _ = await host.get(path_of(salma) + "?part=1")
    assert 'class="pass-card">' in page

    amendment = an_amendment(salma, customer_email="s@example.com")
    _, page, _ = await host.post(path_of(salma, "amend"), amendment, **in_drawer)
    assert 'class="pass-card" open>' in page


async def test_door_staff_get_no_link_to_a_guests_pass(running):
    salma = await seat(running)
    person = await a_person(running, "door", "Karim")
    assert "/access/" not in (await person.get(path_of(salma)))[1]
    assert (await send(person, running, salma, "send-pass", email="x@y.ma"))[0] == 403


@pytest.mark.parametrize(
    ("what", "status"), [("cancel", "confirmed"), ("decline", "requested")]
)  # fmt: skip
@pytest.mark.parametrize("tells", [True, False])
async def test_the_guest_is_notified_only_if_staff_choose_so_and_partners_always(
    running, host, what, status, tells
):
    salma = await seat(running, status=status)
    if status == "confirmed":
        await send(host, running, salma, "send-pass", email=salma.customer_email)
    running.clock.advance(60)
    form = {"words": "Un dégât des eaux, pardon <b>"} | ({"tell": "1"} if tells else {})

    assert (await send(host, running, salma, what, **form))[0] == 303

    told = [row for row in await rows(running, EMAILS) if row[0] != "confirmation"]
    assert told == [(f"{what.removesuffix('e')}{'ed' if what == 'decline' else 'led'}",
                     salma.customer_email, form["words"])] * tells  # fmt: skip
    assert [kind for (kind,) in await rows(running, "SELECT type FROM event")][-1] in {
        "reservation.cancelled", "reservation.declined",
    }  # fmt: skip
    if tells:
        [*_, (id_,)] = await rows(running, "SELECT id FROM email ORDER BY id")
        message = await render_email(running.live, id_)
        assert form["words"] in message.get_body(("plain",)).get_content()
        assert "pardon &lt;b&gt;" in message.get_body(("html",)).get_content()
