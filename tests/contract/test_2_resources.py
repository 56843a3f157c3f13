"""The venue, availability and the list: sections 2.1 to 2.5 and 4."""

import asyncio
import json
from datetime import date

import pytest

from appliance.reservations.change import reissue_pass
from tests.builders import TONIGHT, VENUE_ID, a_body, table_id
from tests.conftest import Running


async def availability(running: Running, query: str) -> dict[str, tuple[bool, str | None]]:
    status, body, _ = await running.call("GET", f"/v1/availability?{query}")
    assert status == 200
    assert body["date"] == TONIGHT
    return {t["name"]: (t["available"], t["blockedBy"]) for t in body["tables"]}


async def test_the_venue_is_returned_with_its_tables_and_slots(running):
    status, body, _ = await running.call("GET", "/v1/venue")

    assert status == 200
    assert body["venue"] == {
        "id": VENUE_ID, "name": "Riad Atlas", "slug": "riad-atlas", "status": "active"
    }  # fmt: skip
    assert body["reservationMode"] == "free"
    assert body["autoConfirm"] is True
    assert body["requestExpiryHours"] == 24
    assert body["policies"] is None
    assert body["currency"] == "MAD"
    assert body["tables"][0] == {
        "id": table_id("T1"), "name": "Terrasse 1", "number": "T1", "capacityMin": 2,
        "capacityMax": 4, "minimumSpend": 500, "type": "standard", "bookable": True,
    }  # fmt: skip
    brunch = body["slots"][2]
    assert (brunch["start"], brunch["end"], brunch["daysOfWeek"]) == ("12:00", "15:00", [0])


@pytest.mark.parametrize(
    ("instant", "day"),
    [("2026-11-22T01:30:00Z", "2026-11-21"), ("2026-11-22T05:59:00Z", "2026-11-21"),
     ("2026-11-22T06:00:00Z", "2026-11-22")],
)  # fmt: skip
async def test_the_venue_contains_the_date_of_the_current_evening(running, instant, day):
    running.clock.set(instant)
    _, body, _ = await running.call("GET", "/v1/venue")
    told = (body["timeZone"], body["eveningEnds"], body["tonight"])
    assert told == ("Africa/Casablanca", "06:00", day)


async def test_availability_gives_the_source_that_holds_each_table(running, venue):
    await running.call("POST", "/v1/reservations", json=a_body())
    await venue.guest_books("T2")
    await venue.staff_book("T3")

    found = await availability(running, f"date={TONIGHT}&slot=19:30")

    assert found == {
        "Terrasse 1": (False, "partner"),
        "Terrasse 2": (False, "platform"),
        "Terrasse 3": (False, "manual"),
        "Terrasse 4": (True, None),
        "Terrasse 5": (True, None),
        "Terrasse 6": (False, None),  # not bookable
    }


async def test_without_a_slot_a_table_is_available_only_if_its_whole_evening_is_free(
    running, venue
):
    await venue.staff_book(slot="22:00")
    running.clock.advance(1)
    await running.call("POST", "/v1/reservations", json=a_body(slot="19:30"))

    evening = await availability(running, f"date={TONIGHT}")
    late = await availability(running, f"date={TONIGHT}&slot=22:00")

    assert evening["Terrasse 1"] == (False, "manual")  # the source of the earliest reservation
    assert late["Terrasse 1"] == (False, "manual")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("date=2026-11-22&slot=12:00", None),  # a Sunday: day zero
        ("date=2026-11-21&date=2026-11-22", "INVALID_DATE"),
        ("date=2026-11-21&slot=19:30&slot=22:00", "INVALID_SLOT"),
        ("date=2026-11-21&time=19:30", "VALIDATION_ERROR"),
        ("", "INVALID_DATE"),
        ("date=tomorrow", "INVALID_DATE"),
        ("date=2026-11-31", "INVALID_DATE"),
        ("date=2026-11-20", "INVALID_DATE"),  # the evening before tonight
        ("date=2028-11-21", "INVALID_DATE"),  # 731 days ahead
        ("date=2026-11-21&slot=25:00", "INVALID_SLOT"),
        ("date=2026-11-21&slot=19:00", "INVALID_SLOT"),
        ("date=2026-11-21&slot=12:00", "INVALID_SLOT"),  # a Saturday: brunch is on Sundays
        ("date=2026-11-21&slot=", "INVALID_SLOT"),
    ],
)
async def test_an_invalid_availability_query_is_refused(running, query, code):
    status, body, _ = await running.call("GET", f"/v1/availability?{query}")
    field = {"INVALID_DATE": "date", "INVALID_SLOT": "slot", "VALIDATION_ERROR": "time"}.get(code)
    assert (status, body.get("code"), body.get("field")) == (400 if code else 200, code, field)


async def test_the_list_contains_every_source_in_the_documented_order(running, venue):
    bookings = [("T1", "22:00"), ("T2", "19:30"), ("T3", None), ("T4", "19:30")]
    for number, slot in bookings:
        await venue.staff_book(number, slot=slot)
        running.clock.advance(1)
    await venue.guest_books(date=date(2026, 11, 22))

    _, body, _ = await running.call("GET", "/v1/reservations")

    names = [(item["table"]["name"][-1], item["slot"]) for item in body["items"]]
    assert names == [("3", None), ("2", "19:30"), ("4", "19:30"), ("1", "22:00"), ("1", "19:30")]
    assert [item["source"] for item in body["items"]] == ["manual"] * 4 + ["platform"]


async def test_an_item_has_the_documented_members(running):
    _, created, _ = await running.call(
        "POST", "/v1/reservations", json=a_body(externalRef="R-7", notes="près de la fontaine")
    )

    _, body, _ = await running.call("GET", "/v1/reservations")

    assert body == {
        "items": [
            {
                "id": created["serviceReservationId"],
                "accessCode": created["accessCode"],
                "status": "confirmed",
                "date": TONIGHT,
                "slot": "19:30",
                "table": {"id": table_id("T1"), "name": "Terrasse 1"},
                "tables": [{"id": table_id("T1"), "name": "Terrasse 1"}],
                "guests": 2,
                "customerFirstName": "Salma",
                "source": "partner",
                "checkedInAt": None,
                "startsAt": "2026-11-21T19:30:00.000Z",
                "endsAt": "2026-11-21T22:00:00.000Z",
                "notifications": {"email": "skipped", "sms": "skipped"},
                "lateAt": None,
                "noShow": False,
                "createdAt": "2026-11-21T19:00:00.000Z",
                "updatedAt": "2026-11-21T19:00:00.000Z",
                "createdByThisKey": True,
                "externalRef": "R-7",
                "guestAccessUrl": created["guestAccessUrl"],
                "claimUrl": created["claimUrl"],
                "customerEmail": None,
                "customerPhone": "+212 600 000 001",
            }
        ],
        "page": 1,
        "limit": 50,
        "total": 1,
        "contactDetailsIncluded": True,
    }


async def test_only_the_reservations_own_partner_sees_a_replaced_code_and_its_links(running, venue):
    booking = a_body()
    _, created, _ = await running.call("POST", "/v1/reservations", json=booking)
    id_ = created["serviceReservationId"]
    await running.live.database.write(reissue_pass, id_, actor="staff:1")
    read = ("accessCode", "guestAccessUrl", "claimUrl")

    _, own, _ = await running.call("GET", f"/v1/reservations/{id_}")
    _, replayed, _ = await running.call("POST", "/v1/reservations", json=booking)
    other = await venue.issue_key()
    _, others, _ = await running.call("GET", f"/v1/reservations/{id_}", key=other)

    assert [own[name] for name in read] == [replayed[name] for name in read]
    assert all(own[name] != created[name] for name in read)
    assert not {"guestAccessUrl", "claimUrl"} & set(others)


async def test_external_references_are_present_only_on_the_partners_own_reservations(
    running, venue
):
    await running.call("POST", "/v1/reservations", json=a_body(externalRef="R-7"))
    running.clock.advance(1)
    other = await venue.issue_key()
    await running.call(
        "POST", "/v1/reservations", json=a_body(tableId=table_id("T2"), idempotencyKey="b")
    )

    _, own, _ = await running.call("GET", "/v1/reservations")
    _, others, _ = await running.call("GET", "/v1/reservations", key=other)

    assert [("externalRef" in item) for item in own["items"]] == [True, False]
    assert [item["createdByThisKey"] for item in own["items"]] == [True, True]
    assert not any("externalRef" in item for item in others["items"])
    assert [item["createdByThisKey"] for item in others["items"]] == [False, False]


async def test_contact_data_is_absent_in_prepaid_mode(running, venue):
    await running.call("POST", "/v1/reservations", json=a_body())
    await venue.change(reservation_mode="prepaid")
    _, body, _ = await running.call("GET", "/v1/reservations")
    assert body["contactDetailsIncluded"] is False
    assert not {"customerEmail", "customerPhone"} & set(body["items"][0])


@pytest.mark.parametrize(
    ("query", "days"),
    [("from=2026-11-22", [22, 23, 24]), ("to=2026-11-22", [21, 22]),
     ("from=2026-11-22&to=2026-11-23", [22, 23]), ("from=2026-11-22&to=2026-11-22", [22]),
     ("status=cancelled", [24]), ("status=confirmed,cancelled", [21, 22, 23, 24]),
     ("status=confirmed&status=cancelled", [21, 22, 23, 24]),
     ("status=declined", []), ("limit=2", [21, 22]), ("limit=2&page=2", [23, 24]),
     ("limit=3&page=2", [24]), ("page=9007199254740992", []), ("limit=200", [21, 22, 23, 24])],
)  # fmt: skip
async def test_date_filters_are_inclusive_and_pages_follow_each_other(running, query, days):
    for day in (24, 21, 23, 22):
        _, created, _ = await running.call(
            "POST", "/v1/reservations", json=a_body(date=f"2026-11-{day}", idempotencyKey=f"{day}")
        )
        if day == 24:
            await running.call("DELETE", f"/v1/reservations/{created['serviceReservationId']}")

    status, body, _ = await running.call("GET", f"/v1/reservations?{query}")

    assert status == 200
    assert [int(item["date"][-2:]) for item in body["items"]] == days
    asked = dict(part.split("=") for part in query.split("&"))
    page, limit = int(asked.get("page", 1)), int(asked.get("limit", 50))
    assert (body["page"], body["limit"]) == (page, limit)
    assert body["total"] == (4 if {"page", "limit"} & asked.keys() else len(days))


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [("from=x", "INVALID_DATE", "from"), ("to=2026-02-30", "INVALID_DATE", "to"),
     ("from=2026-11-22&to=2026-11-21", "INVALID_DATE", "from"),
     ("status=eaten", "VALIDATION_ERROR", "status"), ("status=", "VALIDATION_ERROR", "status"),
     ("status=confirmed,", "VALIDATION_ERROR", "status"), ("page=0", "VALIDATION_ERROR", "page"),
     ("page=1.5", "VALIDATION_ERROR", "page"), ("page=%D9%A1", "VALIDATION_ERROR", "page"),
     ("page=99999999999999999999", "VALIDATION_ERROR", "page"),
     ("limit=0", "VALIDATION_ERROR", "limit"), ("limit=201", "VALIDATION_ERROR", "limit"),
     ("date=2026-11-21", "VALIDATION_ERROR", "date"),
     ("externalRef=", "VALIDATION_ERROR", "externalRef"),
     (f"externalRef={'R' * 121}", "VALIDATION_ERROR", "externalRef"),
     ("updatedSince=2026-11-21T19:00:00", "VALIDATION_ERROR", "updatedSince"),
     ("updatedSince=yesterday", "VALIDATION_ERROR", "updatedSince"),
     ("limit=-1", "VALIDATION_ERROR", "limit"), ("limit=", "VALIDATION_ERROR", "limit"),
     ("limit=1&limit=2", "VALIDATION_ERROR", "limit"),
     (f"from={TONIGHT}&from={TONIGHT}", "INVALID_DATE", "from")],
)  # fmt: skip
async def test_an_invalid_list_query_is_refused_and_never_clamped(running, query, code, field):
    status, body, _ = await running.call("GET", f"/v1/reservations?{query}")
    assert (status, body["code"], body["field"]) == (400, code, field)


async def test_references_and_idempotency_keys_of_other_partners_match_nothing(running, venue):
    _, made, _ = await running.call("POST", "/v1/reservations", json=a_body(externalRef="R-7"))
    other = await venue.issue_key()
    theirs = a_body(tableId=table_id("T2"), externalRef="R-7")
    assert (await running.call("POST", "/v1/reservations", json=theirs, key=other))[0] == 201

    _, found, _ = await running.call("GET", "/v1/reservations?externalRef=R-7")
    _, none, _ = await running.call("GET", "/v1/reservations?externalRef=R-8")

    assert [item["id"] for item in found["items"]] == [made["serviceReservationId"]]
    assert (found["total"], none["total"]) == (1, 0)


async def test_the_updated_since_filter_finds_later_changes_only(running):
    ids = []
    for number in ("T1", "T2"):
        body = a_body(tableId=table_id(number), idempotencyKey=number)
        _, made, _ = await running.call("POST", "/v1/reservations", json=body)
        ids.append(made["serviceReservationId"])
    running.clock.advance(60)
    await running.call("DELETE", f"/v1/reservations/{ids[1]}")

    async def since(instant: str) -> list[str]:
        query = {"updatedSince": instant}
        _, page, _ = await running.call("GET", "/v1/reservations", params=query)
        return [item["id"] for item in page["items"]]

    _, one, _ = await running.call("GET", f"/v1/reservations/{ids[1]}")
    assert one["updatedAt"] == "2026-11-21T19:01:00.000Z"
    assert await since(one["updatedAt"]) == [ids[1]]
    assert sorted(await since("2026-11-21T20:00:00+01:00")) == sorted(ids)
    for unencoded in ("2026-11-21T20:01:00 01:00", "2026-11-21T20:01:00 0100"):
        assert await since(unencoded) == [ids[1]]
    assert await since("2026-11-21T19:01:00.001Z") == []


async def test_a_single_reservation_is_returned_as_in_the_list(running, venue):
    _, made, _ = await running.call("POST", "/v1/reservations", json=a_body(externalRef="R-7"))
    path = f"/v1/reservations/{made['serviceReservationId']}"
    _, page, _ = await running.call("GET", "/v1/reservations")

    status, own, _ = await running.call("GET", path)
    _, others, _ = await running.call("GET", path, key=await venue.issue_key())
    unknown, refusal, _ = await running.call("GET", f"/v1/reservations/{table_id('T1')}")
    elsewhere, _, _ = await running.call("GET", f"/test{path}")

    assert (status, own) == (200, page["items"][0])
    assert "externalRef" not in others
    assert (unknown, refusal["code"], elsewhere) == (404, "NOT_FOUND", 404)


async def test_the_type_of_a_table_can_be_any_text(running, venue):
    await venue.change_table("T1", "péniche")
    _, body, _ = await running.call("GET", "/v1/venue")
    assert body["tables"][0]["type"] == "péniche"


@pytest.mark.parametrize(
    "policies", [None, {"minimumAge": 18, "cancellation": "18:00", "house": {"rule": ["any", 1]}}]
)
async def test_policies_are_null_or_an_object_with_any_members(running, venue, policies):
    stored = None if policies is None else json.dumps(policies)
    await venue.change(policies=stored)
    _, body, _ = await running.call("GET", "/v1/venue")
    assert body["policies"] == policies


@pytest.mark.parametrize("status", ["active", "suspended"])
async def test_an_inactive_venue_can_be_read_and_shows_its_status(running, venue, status):
    await venue.change(status=status)

    _, body, _ = await running.call("GET", "/v1/venue")
    listed, _, _ = await running.call("GET", "/v1/reservations")
    assert (body["venue"]["status"], listed) == (status, 200)
    for slot in ({}, {"slot": "19:30"}):
        found, evening, _ = await running.call(
            "GET", "/v1/availability", params={"date": TONIGHT, **slot}
        )
        free = [table["available"] for table in evening["tables"]]
        assert (found, any(free)) == (200, status == "active")


@pytest.mark.parametrize("query", [b"\xff=", b"externalRef=\xff", b"externalRef=%ED%A0%80"])
async def test_a_query_with_invalid_utf_8_causes_no_internal_error(running, query):
    reader, writer = await asyncio.open_connection("127.0.0.1", running.client.port)
    writer.write(
        b"GET /v1/reservations?%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Authorization: Bearer %s\r\n\r\n" % (query, running.live_key.encode())
    )
    answer = await reader.read()
    writer.close()
    assert answer.split(b" ")[1] in {b"200", b"400"}
