"""What the page for cancelling says when there is nothing to cancel, or no time for it."""

import pytest

from tests.conftest import with_settings

TOO_LATE = "Il est trop tard pour annuler ici"
ARRIVED = 1_795_287_600_000


@pytest.fixture
def settings():
    return with_settings(guest={"cancel_hours": 2}, booking={"enabled": True})


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("row", "said", "books"),
    [
        ({"status": "declined"}, "La maison n’a pas pu accepter cette demande", True),
        ({"status": "cancelled"}, "Cette réservation est annulée", True),
        ({"status": "completed"}, "Cette soirée est passée", True),
        ({"date": "2026-11-20"}, "Cette soirée est passée", True),
        ({"checked_in_at": ARRIVED, "arrived": 4}, "Vous êtes arrivés", False),
        ({}, TOO_LATE, False),
    ],
)
async def test_the_page_says_how_it_stands_and_too_late_only_to_who_is_expected(
    world, guest, clock, method, row, said, books
):
    reservation = await world.reserve(**row)
    clock.set("2026-11-21T09:00:00Z" if "date" in row else "2026-11-21T19:00:00Z")

    answer = await guest.request(
        method, f"{world.claim(reservation)}/cancel", headers={"Sec-Fetch-Site": "same-origin"}
    )
    html = await answer.text()

    assert said in html
    assert (TOO_LATE in html) is (said == TOO_LATE)
    assert ("Réserver une autre table" in html) is books
