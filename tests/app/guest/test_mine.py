"""Guests' actions by their links: claim, correct, cancel, erase, stop reminders."""

import json

import pytest

from appliance.reservations.create import enter_by_staff
from appliance.reservations.email_queue import wants_no_reminders
from appliance.reservations.rows import get_reservation
from tests.app.guest.booking_form import SAME_ORIGIN, cookie_of
from tests.builders import a_booking


async def claimed(world, guest, **changes) -> tuple[str, dict[str, str]]:
    """Claim a reservation. Return its id and the browser's Cookie header."""
    reservation = await world.reserve(**changes)
    return reservation, cookie_of(await guest.post(world.claim(reservation)))


async def one(world, reservation: str, column: str):
    return getattr(await world.database.read(get_reservation, reservation), column)


async def count(world, sql: str) -> int:
    return await world.database.read(lambda reader: reader.value(sql))


async def test_a_claimed_reservation_is_listed_only_on_this_device(world, guest):
    reservation, mine = await claimed(world, guest)
    here = await (await guest.get("/me", headers=mine)).text()
    elsewhere = await (await guest.get("/me")).text()
    assert f"/me/{reservation}" in here
    assert world.access(reservation) in here
    assert reservation not in elsewhere


async def test_the_cookie_is_host_only_secure_and_invisible_to_scripts(world, guest):
    answer = await guest.post(world.claim(await world.reserve()))
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-venuebox-guest-")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= set(cookie.split("; "))


async def test_claiming_twice_on_one_device_keeps_one_claim_and_the_same_cookie(world, guest):
    reservation, mine = await claimed(world, guest)
    again = await guest.post(world.claim(reservation), headers={**mine, **SAME_ORIGIN})
    assert again.status == 200
    assert "Set-Cookie" not in again.headers
    assert await count(world, "SELECT count(*) FROM claim") == 1
    assert await count(world, "SELECT count(*) FROM history WHERE what = 'claimed'") == 1


@pytest.mark.parametrize("forge", ["{}A", "B{}", "", "x" * 4000])
async def test_a_forged_cookie_lists_no_reservations(world, guest, forge):
    reservation, mine = await claimed(world, guest)
    name, _, token = mine["Cookie"].partition("=")
    kept = token[:-1] if token[-1] not in "ABCD" else token[1:]  # an A could restore the original
    forged = {"Cookie": f"{name}={forge.format(kept)}"}
    assert reservation not in await (await guest.get("/me", headers=forged)).text()
    assert (await guest.get(f"/me/{reservation}", headers=forged)).status == 404


@pytest.mark.parametrize("path", ["", "/data.json"])
async def test_another_guests_reservation_cannot_be_opened(world, guest, path):
    _, mine = await claimed(world, guest)
    other = await world.reserve(slot="22:00")
    dead = await (await guest.get("/access/x")).read()
    answer = await guest.get(f"/me/{other}{path}", headers=mine)
    assert (answer.status, await answer.read()) == (404, dead)


async def test_a_guest_can_correct_the_name_and_empty_fields_keep_their_value(world, guest):
    reservation, mine = await claimed(world, guest)

    answer = await guest.post(
        f"/me/{reservation}",
        data={"name": "Selma  Bennani", "email": "", "phone": "+212 600 000 009", "language": "ar"},
        headers={**mine, **SAME_ORIGIN},
        allow_redirects=False,
    )

    assert answer.status == 303
    assert answer.headers["Location"].endswith("&done=corrected")
    assert await one(world, reservation, "customer_name") == "Selma Bennani"
    assert await one(world, reservation, "customer_email") == "salma@example.org"
    assert await one(world, reservation, "customer_phone") == "+212 600 000 009"
    assert await one(world, reservation, "language") == "ar"


@pytest.mark.parametrize(
    ("field", "value"), [("email", "not an address"), ("phone", "12"), ("language", "de")]
)
async def test_an_invalid_correction_is_refused_and_stores_nothing(world, guest, field, value):
    reservation = await world.reserve()
    answer = await guest.post(world.claim(reservation), data={field: value, "name": "Other"})
    html = await answer.text()
    assert answer.status == 400
    assert 'class="fault" role="alert"' in html
    assert 'value="Other"' in html
    if field != "language":
        assert f'value="{value}"' in html
    assert await one(world, reservation, "customer_name") == "Salma Bennani"
    assert await count(world, "SELECT count(*) FROM claim") == 0


async def test_the_claim_page_shows_contacts_only_in_part(world, guest):
    path = world.claim(await world.reserve(customer_phone="+212 600 123 456"))
    html = await (await guest.get(path)).text()
    assert "salma@example.org" not in html
    assert "s…@example.org" in html
    assert "600 123 456" not in html


async def test_a_guest_can_cancel_in_time_and_partners_are_notified(world, guest):
    reservation, mine = await claimed(world, guest, date="2026-11-22")
    path = f"{world.access(reservation)}/cancel"
    answer = await guest.post(path, headers={**mine, **SAME_ORIGIN})
    again = await guest.post(path, headers={**mine, **SAME_ORIGIN})
    assert (answer.status, again.status) == (200, 200)
    assert await one(world, reservation, "status") == "cancelled"
    announced = "SELECT count(*) FROM event WHERE type = 'reservation.cancelled'"
    assert await count(world, announced) == 1


@pytest.mark.parametrize(
    ("now", "checked_in_at", "status"),
    [("2026-11-21T17:29:59Z", None, "cancelled"), ("2026-11-21T17:30:00Z", None, "confirmed"),
     ("2026-11-21T17:29:59Z", 1, "confirmed")],
)  # fmt: skip
async def test_a_guest_can_cancel_until_the_configured_hours_or_the_check_in(
    world, guest, now, checked_in_at, status
):
    reservation = await world.reserve(checked_in_at=checked_in_at)
    path = f"{world.claim(reservation)}/cancel"
    world.clock.set(now)
    await guest.get(path)
    assert await one(world, reservation, "status") == "confirmed"
    answer = await guest.post(path)
    assert await one(world, reservation, "status") == status
    assert answer.status == (200 if status == "cancelled" else 409)


async def test_a_guest_who_is_too_late_to_cancel_sees_the_phone_number(world, guest):
    path = f"{world.claim(await world.reserve())}/cancel"
    await world.database.write(lambda tx: tx.execute("UPDATE venue SET phone = '05 24 00 00 00'"))
    world.clock.set("2026-11-21T17:29:59Z")
    assert "tel:" not in await (await guest.get(path)).text()
    world.clock.set("2026-11-21T17:30:00Z")
    assert 'href="tel:+212524000000"' in await (await guest.get(path)).text()


async def test_a_guest_can_download_all_stored_data_about_them(world, guest):
    reservation, mine = await claimed(world, guest, notes="Sans noix")

    answer = await guest.get(f"/me/{reservation}/data.json", headers=mine)
    known = json.loads(await answer.text())

    assert answer.headers["Content-Disposition"].startswith("attachment;")
    [about] = known["reservations"]
    assert about["customer"]["email"] == "salma@example.org"
    assert about["notes"] == "Sans noix"
    assert [line["what"] for line in about["history"]] == ["claimed"]
    assert about["keptInBrowsers"] == 1


async def test_before_the_evening_an_erasure_request_reaches_staff_once(world, guest):
    reservation, mine = await claimed(world, guest)
    for _ in range(2):
        await guest.post(f"/me/{reservation}/erasure", headers={**mine, **SAME_ORIGIN})
    assert await one(world, reservation, "customer_name") == "Salma Bennani"
    assert await count(world, "SELECT count(*) FROM erasure_request WHERE done_at IS NULL") == 1
    assert await count(world, "SELECT count(*) FROM history WHERE what = 'erasure_asked'") == 1


async def test_after_the_evening_an_erasure_request_is_carried_out_immediately(world, guest):
    reservation, mine = await claimed(world, guest)
    world.clock.set("2026-11-22T13:00:00Z")  # the links have expired, but not the cookie

    answer = await guest.post(
        f"/me/{reservation}/erasure", headers={**mine, **SAME_ORIGIN}, allow_redirects=False
    )

    assert answer.headers["Location"].endswith("&done=erased")
    assert await one(world, reservation, "customer_name") is None
    assert await one(world, reservation, "customer_email") is None
    assert await count(world, "SELECT count(*) FROM claim") == 0


async def test_forgetting_the_device_empties_its_list_and_changes_no_reservation(world, guest):
    reservation, mine = await claimed(world, guest)
    answer = await guest.post("/me/forget", headers={**mine, **SAME_ORIGIN}, allow_redirects=False)
    assert answer.status == 303
    assert "Max-Age=0" in answer.headers["Set-Cookie"]
    assert reservation not in await (await guest.get("/me", headers=mine)).text()
    assert await one(world, reservation, "status") == "confirmed"


async def test_an_access_link_cannot_be_used_to_claim(world, guest):
    token = world.environment.keyring.access_token(await world.reserve(), 0)
    assert (await guest.get(f"/claim-guest/{token}")).status == 404
    for path in ("", "/cancel"):
        assert (await guest.post(f"/claim-guest/{token}{path}")).status == 404


EMAIL = "salma@guest.example"


@pytest.fixture
async def link(running):
    environment = running.live
    booking = a_booking(customer_email=EMAIL, language="ar")
    reservation = await environment.database.write(enter_by_staff, booking, actor="staff:1")
    return f"/no-reminders/{environment.keyring.access_token(reservation.id, 0)}"


def stopped(running):
    return running.live.database.peek(wants_no_reminders, EMAIL)


async def test_the_unsubscribe_page_asks_first_and_one_click_stops_reminders(running, link):
    for method in ("GET", "HEAD"):
        answer = await running.client.request(method, link)
        assert (answer.status, answer.headers["Content-Language"]) == (200, "ar")
    assert not stopped(running)

    answer = await running.client.post(link, data={"List-Unsubscribe": "One-Click"})
    assert answer.status == 200
    assert stopped(running)
    assert (await running.client.post(link)).status == 200
