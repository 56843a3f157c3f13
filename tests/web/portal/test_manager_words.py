"""Words that a manager reads and acts upon."""

from tests.web.portal.people import a_person
from tests.web.portal.seating import seat


async def test_the_kinds_of_tables_are_said_in_the_readers_language(running):
    owner = await a_person(running, "owner")

    _, page, _ = await owner.get("/portal/venue?lang=ar")

    assert "<bdi>عادية</bdi>" in page
    assert "<bdi>standard</bdi>" not in page


async def test_to_close_days_is_not_to_close_a_form(running):
    owner = await a_person(running, "owner")

    _, page, _ = await owner.get("/portal/venue/closings?lang=fr")

    assert '<button class="button">Fermer ces jours</button>' in page


async def test_a_check_that_the_portal_can_mend_leads_there(running):
    owner = await a_person(running, "owner")

    _, page, _ = await owner.get("/portal/box?again=1&lang=fr")

    assert 'href="/portal/setup/mail">Modifier les réglages du courrier</a></div>' in page


async def test_a_request_offers_one_way_to_say_no(running):
    asked = await seat(running, status="requested", access_code=None)
    told = await seat(running, table="T2")
    host = await a_person(running, "host")

    _, request, _ = await host.get(f"/portal/reservations/{asked.id}?lang=fr")
    _, reservation, _ = await host.get(f"/portal/reservations/{told.id}?lang=fr")

    assert "Refuser" in request
    assert "Annuler la réservation" not in request
    assert "Arrive en retard" not in request
    assert "Annuler la réservation" in reservation
