"""The link below a reminder: looking changes nothing, one click is enough."""

import pytest

from appliance.actions.enter import enter_by_staff
from appliance.store.no_reminders import wants_no_reminders
from tests.builders import a_booking

EMAIL = "salma@guest.example"


@pytest.fixture
async def link(running):
    environment = running.live
    booking = a_booking(customer_email=EMAIL)
    reservation = await environment.database.write(enter_by_staff, booking, actor="staff:1")
    return f"/no-reminders/{environment.keyring.access_token(reservation.id)}"


def stopped(running):
    return running.live.database.peek(wants_no_reminders, EMAIL)


@pytest.mark.parametrize(
    ("language", "words"),
    [("fr", "Arrêter les rappels"), ("en", "Stop reminders?"), ("ar", "هل تريدون")],
)
async def test_looking_asks_and_changes_nothing(running, link, language, words):
    for method in ("GET", "HEAD"):
        answer = await running.client.request(method, f"{link}?lang={language}")
        assert answer.status == 200
        if method == "GET":
            assert words in await answer.text()
    assert not stopped(running)


async def test_the_mail_program_stops_them_in_one_click(running, link):
    answer = await running.client.post(link, data={"List-Unsubscribe": "One-Click"})

    assert answer.status == 200
    assert stopped(running)
    assert (await running.client.post(link)).status == 200


async def test_a_link_that_the_box_never_made_stops_nothing(running, link):
    for path in ("/no-reminders/x", link + "x", "/no-reminders/", "/test" + link):
        assert (await running.client.post(path)).status == 404
    assert not stopped(running)
