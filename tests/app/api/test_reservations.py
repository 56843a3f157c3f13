"""Creating reservations (sections 2.6, 2.7, 3 and 4), and how partners read what staff change."""

import asyncio
import json
import re

import pytest

from appliance.api_keys import list_keys
from appliance.core.errors import Unavailable
from appliance.database.connection import Transaction
from appliance.privacy import erase_guest
from appliance.reservations.change import Amendment, amend_reservation, move_to_table
from appliance.reservations.create import settle_email
from appliance.reservations.rows import get_reservation
from tests.builders import TONIGHT, a_body, a_key, table_id
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
async def test_a_replay_answers_the_original_and_makes_nothing_new(running, guests, mismatch):
    _, first, _ = await create(running)
    status, again, headers = await create(running, guests=guests)

    assert (status, again) == (200, first)
    assert headers["Idempotent-Replayed"] == "true"
    assert headers.get("Idempotency-Body-Mismatch") == mismatch
    _, listed, _ = await running.call("GET", "/v1/reservations")
    assert listed["total"] == 1
    assert await events(running) == ["reservation.created"]


@pytest.mark.parametrize(("date", "mismatch"), [(TONIGHT, None), ("2026-12-21", "true")])
async def test_a_key_that_returns_for_another_evening_is_told_after_the_guest_was_erased(
    running, date, mismatch
):
    _, first, _ = await create(running)
    id_ = first["serviceReservationId"]
    await running.live.database.write(lambda tx: erase_guest(tx, id_, actor="guest"))
    status, again, headers = await create(running, date=date)

    assert (status, again) == (200, first)
    assert headers.get("Idempotency-Body-Mismatch") == mismatch


async def test_fifty_identical_requests_at_once_make_one_reservation(running):
    answers = await asyncio.gather(*(create(running) for _ in range(50)))

    statuses = sorted(status for status, _, _ in answers)
    assert statuses == [200] * 49 + [201]
    assert all(body == answers[0][1] for _, body, _ in answers)
    replayed = [
        headers.get("Idempotent-Replayed") for status, _, headers in answers if status == 200
    ]
    assert replayed == ["true"] * 49


async def test_fifty_requests_for_one_table_at_once_grant_it_once(running):
    answers = await asyncio.gather(*(create(running, idempotencyKey=f"k{i}") for i in range(50)))
    assert sorted(status for status, _, _ in answers) == [201] + [409] * 49
    assert {body["code"] for status, body, _ in answers if status == 409} == {"TABLE_TAKEN"}


async def test_a_refused_attempt_is_not_stored_so_its_key_may_be_tried_again(running):
    await create(running, idempotencyKey="first")
    refused, _, _ = await create(running, idempotencyKey="second")
    status, _, _ = await create(running, idempotencyKey="second", tableId=table_id("T2"))
    assert (refused, status) == (409, 201)


async def test_a_rotated_key_inherits_replays_references_and_the_right_to_cancel(running):
    _, first, _ = await create(running, externalRef="R-7")
    old = running.live.database.peek(list_keys)[0]
    new = await a_key(running.live, successor_of=old)

    status, again, _ = await running.call("POST", "/v1/reservations", json=a_body(), key=new)
    assert (status, again) == (200, first)
    _, listed, _ = await running.call("GET", "/v1/reservations", key=new)
    assert listed["items"][0]["externalRef"] == "R-7"
    status, _, _ = await running.call(
        "DELETE", f"/v1/reservations/{first['serviceReservationId']}", key=new
    )
    assert status == 200


async def test_a_slot_after_midnight_is_not_granted_beside_the_one_that_runs_into_it(running):
    await running.live.database.write(_offer_after_midnight)
    await create(running, slot="22:00", idempotencyKey="a")  # until 01:00
    status, body, _ = await create(running, slot="00:30", idempotencyKey="b")
    _, seen, _ = await running.call("GET", f"/v1/availability?date={TONIGHT}&slot=00:30")
    assert (status, body["code"]) == (409, "TABLE_TAKEN")
    assert seen["tables"][0]["blockedBy"] == "partner"


def _offer_after_midnight(tx: Transaction) -> None:
    slot = {"id": tx.new_id(), "position": 9, "name": "After", "start": "00:30", "end": "03:00"}
    tx.insert("slot", slot | {"days_of_week": json.dumps(list(range(7)))})


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
async def test_refusals_that_depend_on_the_venue(running, changes, status, code):
    found, body, _ = await create(running, **changes)
    assert (found, body["code"]) == (status, code)
    assert set(body) <= {"error", "error_en", "code", "field"}


@pytest.mark.parametrize("venue_status", ["inactive", "suspended"])
async def test_a_venue_that_is_not_active_refuses_creation(running, venue_status):
    await running.live.database.write(
        lambda tx: tx.execute("UPDATE venue SET status = :s", {"s": venue_status})
    )
    status, body, _ = await create(running, tableId="2f1c8d5e-0000-4000-8000-000000000000")
    assert (status, body["code"]) == (409, "VENUE_INACTIVE")  # and before TABLE_NOT_FOUND
    assert "field" not in body


async def test_a_replay_is_answered_even_when_the_venue_became_inactive(running):
    _, first, _ = await create(running)
    await running.live.database.write(lambda tx: tx.execute("UPDATE venue SET status = 'inactive'"))
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
async def test_the_evening_rolls_over_at_its_own_hour(running, now, date, status):
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
async def test_an_ended_slot_is_not_available_nor_bookable(running, prefix, now, slot, *, is_over):
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


async def test_a_reservation_in_the_test_environment_is_nothing_in_live(running):
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
async def test_the_outcome_of_the_email_is_replayed(running, prefix, customer, notify, outcome):
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
async def test_letters_and_pages_use_the_customers_language(running, language, written, read):
    customer = {"name": "Salma", "email": "salma@example.com", "language": language}
    _, body, _ = await running.call("POST", "/test/v1/reservations", json=a_body(customer=customer))

    letters = running.test.database.peek(
        lambda reader: list(reader.rows("SELECT language FROM email"))
    )
    assert letters == [(written,)]
    for url in (body["guestAccessUrl"], body["claimUrl"]):
        path = url.removeprefix("https://box.example")
        headers = {"Accept-Language": "ar"}
        async with running.client.get(path, headers=headers) as response:
            assert response.headers["Content-Language"] == read
        async with running.client.get(f"{path}?lang=en", headers=headers) as response:
            assert response.headers["Content-Language"] == "en"


BY = "staff:yasmine"


async def test_a_party_at_another_table_is_in_the_list_and_among_the_updates(running):
    database = running.live.database
    _, booked, _ = await running.call("POST", "/v1/reservations", json=a_body())
    before = await database.read(get_reservation, booked["serviceReservationId"])
    moved = await database.write(move_to_table, before.id, table_id("T2"), actor=BY)
    party = Amendment(3, before.customer_name, None, before.customer_phone, None)
    await database.write(amend_reservation, moved.id, party, actor=BY)

    _, listed, _ = await running.call("GET", f"/v1/reservations?from={TONIGHT}&to={TONIGHT}")
    (item,) = listed["items"]
    assert (item["table"]["id"], item["guests"]) == (table_id("T2"), 3)
    _, evening, _ = await running.call("GET", f"/v1/availability?date={TONIGHT}&slot=19:30")
    held = [table["id"] for table in evening["tables"] if table["blockedBy"]]
    assert held == [table_id("T2")]
    assert await events(running) == ["reservation.created", *["reservation.updated"] * 2]


async def events(running: Running) -> list[str]:
    return await running.live.database.read(
        lambda tx: [type_ for (type_,) in tx.rows("SELECT type FROM event ORDER BY seq")]
    )


async def test_a_booking_that_was_committed_is_never_answered_as_not_recorded(running, monkeypatch):
    database, body = running.live.database, a_body(customer={"name": "S", "email": "s@a.example"})
    write = database.write

    async def fill_up(action, *args, **keywords):
        if action is settle_email:
            raise Unavailable
        return await write(action, *args, **keywords)

    with monkeypatch.context() as full_disk:
        full_disk.setattr(database, "write", fill_up)
        status, answer, _ = await running.call("POST", "/v1/reservations", json=body)
    replayed = await running.call("POST", "/v1/reservations", json=body)

    assert (status, answer["notifications"]["email"]) == (201, "failed")
    assert replayed[:2] == (200, answer)
