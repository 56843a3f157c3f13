"""Reservations from the venue's own page and from staff (interface, section 3)."""

import pytest

from appliance.actions.enter import enter_by_staff, enter_for_guest
from appliance.box import Box
from appliance.errors import TableTaken
from appliance.house_errors import FormUsed
from tests.builders import a_booking


async def set_house(box: Box, mode: str, *, auto_confirm: bool, hours: int = 24) -> None:
    await box.live.database.write(
        lambda tx: tx.execute(
            """UPDATE venue SET reservation_mode = :mode, auto_confirm = :auto,
                                request_expiry_hours = :hours""",
            {"mode": mode, "auto": int(auto_confirm), "hours": hours},
        )
    )


def events(box: Box) -> list[str]:
    return [type_ for (type_,) in box.live.database.peek(
        lambda reader: list(reader.rows("SELECT type FROM event ORDER BY seq"))
    )]  # fmt: skip


@pytest.mark.proves(
    "decision: When is reservation.confirmed sent?",
    "decision: How does a guest's own booking begin?",
)
@pytest.mark.parametrize(
    ("mode", "auto_confirm", "status"),
    [
        ("free", True, "confirmed"),
        ("free", False, "requested"),
        ("prepaid", True, "pending"),
        ("prepaid", False, "pending"),
    ],
)
async def test_a_guests_booking_begins_as_the_house_has_decided(
    box: Box, mode: str, auto_confirm: bool, status: str
):
    await set_house(box, mode, auto_confirm=auto_confirm)

    found = await box.live.database.write(enter_for_guest, a_booking())

    assert (found.status, found.source) == (status, "platform")
    assert events(box) == ["reservation.created"]


async def test_a_request_expires_after_the_hours_of_the_house_and_nothing_else_does(box: Box):
    await set_house(box, "free", auto_confirm=False, hours=3)
    request = await box.live.database.write(enter_for_guest, a_booking())
    await set_house(box, "free", auto_confirm=True, hours=3)
    confirmed = await box.live.database.write(enter_for_guest, a_booking(slot="22:00"))

    assert request.expires_at == request.created_at + 3 * 3_600_000
    assert confirmed.expires_at is None


@pytest.mark.proves("decision: How does one begin that staff write down?")
@pytest.mark.parametrize("mode", ["free", "prepaid"])
async def test_what_staff_write_down_is_confirmed_at_once(box: Box, mode: str):
    await set_house(box, mode, auto_confirm=False)

    found = await box.live.database.write(enter_by_staff, a_booking(), actor="staff:x")

    assert (found.status, found.source) == ("confirmed", "manual")
    assert events(box) == ["reservation.created"]


@pytest.mark.proves("decision: How does a guest's own booking begin?")
async def test_an_unanswered_request_and_an_unpaid_booking_hold_their_table(box: Box):
    await set_house(box, "free", auto_confirm=False)
    await box.live.database.write(enter_for_guest, a_booking())
    await set_house(box, "prepaid", auto_confirm=False)
    await box.live.database.write(enter_for_guest, a_booking(slot="22:00"))

    for slot in ("19:30", "22:00", None):
        with pytest.raises(TableTaken):
            await box.live.database.write(enter_by_staff, a_booking(slot=slot), actor="staff:x")


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({"customer_name": "Karim Alaoui"}, {}),
        ({"slot": "22:00"}, {}),
        ({}, {"vip": True}),
        ({}, {"letter": "send"}),
    ],
)
async def test_a_form_of_staff_that_was_used_says_so_instead_of_showing_what_it_made(
    box: Box, changes: dict, options: dict
):
    write = box.live.database.write
    first = await write(enter_by_staff, a_booking(idempotency_key="form"), actor="staff:x")
    again = await write(enter_by_staff, a_booking(idempotency_key="form"), actor="staff:x")
    other = a_booking(idempotency_key="form", **changes)

    with pytest.raises(FormUsed):
        await write(enter_by_staff, other, actor="staff:x", **options)

    assert again == first
    assert events(box) == ["reservation.created"]
