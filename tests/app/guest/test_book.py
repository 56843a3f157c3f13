"""The booking page: its offer, a booking, and concurrent bookings of the last table."""

import json
import re

import pytest

from tests.app.guest.booking_form import (
    a_form,
    cookie_of,
    reservations,
    rows,
    send,
    token_of,
)
from tests.builders import TONIGHT, table_id
from tests.conftest import set_rules, with_settings


@pytest.fixture
def settings():
    return with_settings(
        booking={"hourly_for_address": 1000, "hourly": 1000},
    )


@pytest.fixture(autouse=True)
async def booking_page(box):
    await set_rules(box.live, booking_page=1)


@pytest.fixture(autouse=True)
def early(clock):
    clock.set("2026-11-21T12:00:00Z")


async def test_a_confirmed_booking_opens_its_page_and_appears_in_the_devices_list(world, guest):
    answer = await send(guest, a_form(await token_of(world, guest)))
    place = answer.headers["Location"]
    html = await (await guest.get(place)).text()

    assert answer.status == 303
    assert place.startswith("/book/")
    assert "Youssef El Amrani" in html
    assert await reservations(world) == [
        ("T2", "19:30", 2, "confirmed", "platform", "Youssef El Amrani", "fr")
    ]
    mine = await (await guest.get("/me", headers=cookie_of(answer))).text()
    assert "T2" in mine


@pytest.mark.parametrize(
    ("mode", "auto", "status", "kind"),
    [("free", 1, "confirmed", "confirmation"), ("free", 0, "requested", "requested"),
     ("prepaid", 1, "pending", "payment_due")],
)  # fmt: skip
async def test_each_reservation_mode_has_its_own_status_and_email(
    world, guest, mode, auto, status, kind
):
    await world.database.write(
        lambda tx: tx.execute(
            "UPDATE venue SET reservation_mode = :m, auto_confirm = :a", {"m": mode, "a": auto}
        )
    )

    await send(guest, a_form(await token_of(world, guest)))

    assert [row[3] for row in await reservations(world)] == [status]
    assert await rows(world, "SELECT kind, recipient FROM email") == [(kind, "youssef@example.org")]


async def test_a_booking_gets_the_smallest_table_that_seats_the_party(world, guest):
    await world.database.write(
        lambda tx: tx.execute("UPDATE venue_table SET capacity_max = 2 WHERE number = 'T4'")
    )
    await send(guest, a_form(await token_of(world, guest), **{"table-19:30": ""}))
    assert [row[0] for row in await reservations(world)] == ["T4"]


async def test_a_guest_who_loses_a_table_sees_the_free_ones_and_keeps_the_typed_text(world, guest):
    token = await token_of(world, guest)
    await world.reserve(table_id=table_id("T2"))

    answer = await send(guest, a_form(token, notes="Sans noix"))
    html = await answer.text()

    assert answer.status == 409
    for number in ("T1", "T3", "T4", "T5"):
        assert f"\u2068{number}\u2069" in html
    assert 'value="Youssef El Amrani"' in html
    assert "Sans noix</textarea>" in html
    assert (await send(guest, a_form(token, **{"table-19:30": table_id("T3")}))).status == 303


async def test_a_guest_who_chose_a_full_slot_sees_the_free_slots(world, guest):
    token = await token_of(world, guest)
    for number in ("T1", "T2", "T3", "T4", "T5"):
        await world.reserve(table_id=table_id(number))

    answer = await send(guest, a_form(token, **{"table-19:30": ""}))
    html = await answer.text()

    assert answer.status == 409
    assert "\u206822:00\u2069" in html


WRONG = [
    {"name": " "}, {"name": "x" * 201}, {"email": "", "phone": ""}, {"email": "youssef@"},
    {"phone": "12"}, {"notes": "x" * 501}, {"when": ""}, {"when": "25:00"},
]  # fmt: skip
NOT_OFFERED = [
    {"guests": "99"}, {"guests": "x"}, {"date": "2026-11-20"}, {"date": "2030-01-01"},
    {"when": "12:00", "table-12:00": ""}, {"table-19:30": table_id("T6")},
    {"table-19:30": "01890000-0000-7000-8000-000000000000"},
]  # fmt: skip


@pytest.mark.parametrize("changes", WRONG + NOT_OFFERED)
async def test_an_invalid_or_unavailable_choice_is_explained_and_books_nothing(
    world, guest, changes
):
    answer = await send(guest, a_form(await token_of(world, guest), **changes))
    assert answer.status == (400 if changes in WRONG else 409)
    assert 'role="alert"' in await answer.text()
    assert await reservations(world) == []


async def test_policies_and_phone_number_are_shown_before_booking_and_beside_the_pass(world, guest):
    policies = {"cancellation": "24 h <b>", "lateArrivalMinutes": 20, "minimumAge": "18"}
    policies |= {"Chiens": "en laisse", "petsAllowed": True}
    changes = {"policies": json.dumps(policies), "phone": "+212 524 00 00 00", "days": 44}
    await world.database.write(
        lambda tx: tx.execute(
            "UPDATE venue SET policies = :policies, phone = :phone, contact_days = :days", changes
        )
    )
    for path in ("/book", world.access(await world.reserve())):
        html = await (await guest.get(path)).text()
        assert "24 h &lt;b&gt;" in html
        assert 'dir="auto"><b>Chiens</b> <bdi>en laisse</bdi>' in html
        assert "petsAllowed" not in html
        assert " 20 minutes" in html
        assert "Âge minimum" not in html  # not a number
        assert 'href="tel:+212524000000"' in html
        assert path != "/book" or "44 jours" in html


async def test_a_slot_after_midnight_is_offered_with_its_calendar_date(world, guest):
    await world.database.write(
        lambda tx: tx.execute(
            "UPDATE slot SET start = '00:30', end = '03:00' WHERE start = '22:00'"
        )
    )

    html = await (await guest.get("/book")).text()

    assert html.count("dim. 22 nov.</span>") == 1
    assert re.search(r"00:30 – 03:00</span>\s*<span[^>]*>dim. 22 nov.", html)


async def test_a_slot_that_has_started_is_neither_offered_nor_bookable(world, guest):
    world.clock.set("2026-11-21T19:00:00Z")
    token = await token_of(world, guest)
    world.clock.set("2026-11-21T19:40:00Z")

    html = await (await guest.get("/book")).text()
    answer = await send(guest, a_form(token))

    assert 'value="19:30" required disabled' in html
    assert answer.status == 409
    assert await reservations(world) == []


async def test_the_page_says_that_a_closing_day_is_closed(world, guest):
    await world.database.write(
        lambda tx: tx.insert(
            "closing_day",
            {"id": tx.new_id(), "first_day": TONIGHT, "last_day": TONIGHT, "reason": "Travaux"},
        )
    )

    html = await (await guest.get("/book")).text()

    assert "Travaux" not in html
    assert f'data-day="{TONIGHT}"' not in html
    assert 'data-day="2026-11-22"' in html


async def test_going_back_and_choosing_differently_makes_a_second_booking(world, guest):
    form = a_form(await token_of(world, guest))
    await send(guest, form)
    other = {**form, "name": "Nadia Tazi", "when": "22:00"}

    answer = await send(guest, other)
    html = await answer.text()
    world.clock.advance(5)
    fresh = re.search(r'name="token" value="([^"]+)"', html).group(1)
    again = await send(guest, {**other, "token": fresh})

    assert (answer.status, again.status) == (409, 303)
    assert 'value="Nadia Tazi"' in html
    assert [(row[1], row[5]) for row in await reservations(world)] == [
        ("19:30", "Youssef El Amrani"), ("22:00", "Nadia Tazi")
    ]  # fmt: skip
