"""Creating reservations (sections 2.6, 2.7, 3 and 4), and how partners read what staff change."""

import asyncio
import re

import pytest

from tests.builders import TONIGHT, a_body, table_id
from tests.conftest import Running


async def create(running: Running, **changes):
    return await running.call("POST", "/v1/reservations", json=a_body(**changes))


async def test_a_created_reservation_is_confirmed_with_code_and_links(running):
    status, body, headers = await create(running)

    assert status == 201
    assert set(body) == {
        "serviceReservationId",
        "accessCode",
        "status",
        "guestAccessUrl",
        "claimUrl",
        "accessLinkExpiresAt",
        "notifications",
    }
    assert body["status"] == "confirmed"
    assert re.fullmatch("SVC-[23456789ABCDEFGHJKMNPQRSTUVWXYZ]{4}", body["accessCode"])
    assert body["guestAccessUrl"].startswith("https://box.example/access/")
    assert body["claimUrl"].startswith("https://box.example/claim-guest/")
    assert body["accessLinkExpiresAt"] == "2026-11-22T12:00:00.000Z"
    assert body["notifications"] == {"email": "skipped", "sms": "skipped"}
    assert "Idempotent-Replayed" not in headers
    assert headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(("guests", "mismatch"), [(2, None), (3, "true")])
async def test_a_replay_returns_the_original_answer_and_creates_nothing(
    running, venue, guests, mismatch
):
    _, first, _ = await create(running)
    status, again, headers = await create(running, guests=guests)

    assert (status, again) == (200, first)
    assert headers["Idempotent-Replayed"] == "true"
    assert headers.get("Idempotency-Body-Mismatch") == mismatch
    _, listed, _ = await running.call("GET", "/v1/reservations")
    assert listed["total"] == 1
    assert await venue.events() == ["reservation.created"]


@pytest.mark.parametrize(("date", "mismatch"), [(TONIGHT, None), ("2026-12-21", "true")])
async def test_a_reused_idempotency_key_with_another_date_is_flagged_even_after_an_erasure(
    running, venue, date, mismatch
):
    _, first, _ = await create(running)
    await venue.erase(first["serviceReservationId"])
    status, again, headers = await create(running, date=date)

    assert (status, again) == (200, first)
    assert headers.get("Idempotency-Body-Mismatch") == mismatch


async def test_fifty_identical_simultaneous_requests_create_one_reservation(running):
    answers = await asyncio.gather(*(create(running) for _ in range(50)))

    statuses = sorted(status for status, _, _ in answers)
    assert statuses == [200] * 49 + [201]
    assert all(body == answers[0][1] for _, body, _ in answers)
    replayed = [
        headers.get("Idempotent-Replayed") for status, _, headers in answers if status == 200
    ]
    assert replayed == ["true"] * 49


async def test_of_fifty_simultaneous_requests_for_one_table_one_succeeds(running):
    answers = await asyncio.gather(*(create(running, idempotencyKey=f"k{i}") for i in range(50)))
    assert sorted(status for status, _, _ in answers) == [201] + [409] * 49
    assert {body["code"] for status, body, _ in answers if status == 409} == {"TABLE_TAKEN"}


async def test_a_refused_request_is_not_stored_so_its_key_can_be_used_again(running):
    await create(running, idempotencyKey="first")
    refused, _, _ = await create(running, idempotencyKey="second")
    status, _, _ = await create(running, idempotencyKey="second", tableId=table_id("T2"))
    assert (refused, status) == (409, 201)


async def test_a_rotated_key_inherits_replays_references_and_the_right_to_cancel(running, venue):
    _, first, _ = await create(running, externalRef="R-7")
    new = await venue.rotate_key()

    status, again, _ = await running.call("POST", "/v1/reservations", json=a_body(), key=new)
    assert (status, again) == (200, first)
    _, listed, _ = await running.call("GET", "/v1/reservations", key=new)
    assert listed["items"][0]["externalRef"] == "R-7"
    status, _, _ = await running.call(
        "DELETE", f"/v1/reservations/{first['serviceReservationId']}", key=new
    )
    assert status == 200


async def test_a_slot_after_midnight_is_refused_if_an_earlier_slot_overlaps_it(running, venue):
    await venue.offer("00:30", "03:00")
    await create(running, slot="22:00", idempotencyKey="a")  # until 01:00
    status, body, _ = await create(running, slot="00:30", idempotencyKey="b")
    _, seen, _ = await running.call("GET", f"/v1/availability?date={TONIGHT}&slot=00:30")
    assert (status, body["code"]) == (409, "TABLE_TAKEN")
    assert seen["tables"][0]["blockedBy"] == "partner"


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"tableId": "2f1c8d5e-0000-4000-8000-000000000000"}, 404, "TABLE_NOT_FOUND"),
        ({"tableId": table_id("T6")}, 409, "TABLE_NOT_BOOKABLE"),
        ({"guests": 5}, 400, "GUESTS_OUT_OF_RANGE"),
        ({"guests": 1}, 400, "GUESTS_OUT_OF_RANGE"),
        ({"guests": 10**30}, 400, "GUESTS_OUT_OF_RANGE"),
        ({"slot": "12:00"}, 400, "INVALID_SLOT"),  # offered on Sundays only
        ({"slot": "19:31"}, 400, "INVALID_SLOT"),
        ({"date": "2026-11-20"}, 400, "INVALID_DATE"),
        ({"date": "2028-11-21"}, 400, "INVALID_DATE"),  # 731 days ahead
    ],
)
async def test_a_booking_that_breaks_a_rule_of_the_venue_is_refused(running, changes, status, code):
    found, body, _ = await create(running, **changes)
    assert (found, body["code"]) == (status, code)
    assert set(body) <= {"error", "error_en", "code", "field"}


@pytest.mark.parametrize("venue_status", ["inactive", "suspended"])
async def test_a_venue_that_is_not_active_refuses_bookings(running, venue, venue_status):
    await venue.change(status=venue_status)
    status, body, _ = await create(running, tableId="2f1c8d5e-0000-4000-8000-000000000000")
    assert (status, body["code"]) == (409, "VENUE_INACTIVE")  # and before TABLE_NOT_FOUND
    assert "field" not in body


async def test_a_replay_is_answered_even_after_the_venue_became_inactive(running, venue):
    _, first, _ = await create(running)
    await venue.change(status="inactive")
    status, again, _ = await create(running)
    assert (status, again) == (200, first)


@pytest.mark.parametrize(
    ("now", "date", "status"),
    [
        ("2026-11-22T05:59:00Z", "2026-11-21", 201),  # tonight is still yesterday's date
        ("2026-11-22T06:00:00Z", "2026-11-21", 400),
        ("2026-11-22T06:00:00Z", "2026-11-22", 201),
        ("2026-11-21T19:00:00Z", "2028-11-20", 201),  # 730 days ahead
    ],
)
async def test_the_service_date_changes_at_the_venues_own_hour(running, now, date, status):
    running.clock.set(now)
    found, _, _ = await create(running, date=date, slot=None)
    assert found == status


@pytest.mark.parametrize("prefix", ["", "/test"])
@pytest.mark.parametrize(
    ("now", "slot", "is_over"),
    [
        ("2026-11-21T21:59:00Z", "19:30", False),  # it has begun
        ("2026-11-21T22:00:00Z", "19:30", True),
        ("2026-11-22T01:00:00Z", "22:00", True),
        ("2026-11-22T05:59:00Z", None, False),
    ],
)
async def test_an_ended_slot_is_neither_available_nor_bookable(
    running, prefix, now, slot, *, is_over
):
    running.clock.set(now)
    query = {"date": TONIGHT} | ({"slot": slot} if slot else {})

    _, free, _ = await running.call("GET", f"{prefix}/v1/availability", params=query)
    status, body, _ = await running.call(
        "POST", f"{prefix}/v1/reservations", json=a_body(slot=slot)
    )

    told = {(table["available"], table["blockedBy"]) for table in free["tables"][:5]}
    assert told == {(not is_over, None)}
    if is_over:
        assert (status, body["code"], body["field"]) == (400, "INVALID_SLOT", "slot")
    else:
        assert status == 201


async def test_a_reservation_of_the_test_environment_does_not_exist_in_live(running):
    status, body, _ = await running.call("POST", "/test/v1/reservations", json=a_body())
    assert status == 201
    assert body["guestAccessUrl"].startswith("https://box.example/test/access/")
    _, live, _ = await running.call("GET", "/v1/reservations")
    _, test, _ = await running.call("GET", "/test/v1/reservations")
    assert (live["total"], test["total"]) == (0, 1)


@pytest.mark.parametrize(
    ("prefix", "customer", "notify", "outcome"),
    [
        ("", {"name": "S", "email": "s@example.com"}, True, "failed"),  # no mail server
        ("", {"name": "S", "email": "s@example.com"}, False, "skipped"),
        ("", {"name": "S", "phone": "0600000001"}, True, "skipped"),
        ("/test", {"name": "S", "email": "s@example.com"}, True, "sent"),
    ],
)
async def test_a_replay_returns_the_original_outcome_of_the_email(
    running, prefix, customer, notify, outcome
):
    told = []
    for _ in range(2):
        body = a_body(customer=customer, notifyCustomer=notify)
        _, answer, _ = await running.call("POST", f"{prefix}/v1/reservations", json=body)
        told.append(answer["notifications"])
    assert told == [{"email": outcome, "sms": "skipped"}] * 2


@pytest.mark.parametrize(
    ("language", "written", "read"),
    [("en", "en", "en"), ("ar", "ar", "ar"), ("fr", "fr", "fr"), (None, "fr", "ar")],
)
async def test_emails_and_pages_are_in_the_customers_language(
    running, sandbox, language, written, read
):
    customer = {"name": "Salma", "email": "salma@example.com", "language": language}
    _, body, _ = await running.call("POST", "/test/v1/reservations", json=a_body(customer=customer))

    assert await sandbox.emails() == [("confirmation", written)]
    for url in (body["guestAccessUrl"], body["claimUrl"]):
        path = url.removeprefix("https://box.example")
        headers = {"Accept-Language": "ar"}
        async with running.client.get(path, headers=headers) as response:
            assert response.headers["Content-Language"] == read
        async with running.client.get(f"{path}?lang=en", headers=headers) as response:
            assert response.headers["Content-Language"] == "en"


async def test_a_reservation_moved_and_resized_by_staff_is_listed_and_announced_as_updated(
    running, venue
):
    _, booked, _ = await running.call("POST", "/v1/reservations", json=a_body())
    await venue.move(booked["serviceReservationId"], "T2")
    await venue.amend(booked["serviceReservationId"], guests=3)

    _, listed, _ = await running.call("GET", f"/v1/reservations?from={TONIGHT}&to={TONIGHT}")
    (item,) = listed["items"]
    assert (item["table"]["id"], item["guests"]) == (table_id("T2"), 3)
    _, evening, _ = await running.call("GET", f"/v1/availability?date={TONIGHT}&slot=19:30")
    held = [table["id"] for table in evening["tables"] if table["blockedBy"]]
    assert held == [table_id("T2")]
    assert await venue.events() == ["reservation.created", *["reservation.updated"] * 2]
