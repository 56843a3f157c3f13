"""Changing reservations: `PATCH /v1/reservations/{id}`, and the event `reservation.updated`."""

import asyncio
from datetime import date

import pytest

from appliance.reservations.change import change_reservation
from tests.builders import TONIGHT, a_body, a_key, table_id
from tests.conftest import Running

TOMORROW = "2026-11-22"
MAILED = {"name": "Salma Idrissi", "email": "salma@example.com"}


async def book(running: Running, prefix: str = "", **changes) -> dict:
    _, made, _ = await running.call("POST", f"{prefix}/v1/reservations", json=a_body(**changes))
    return made


async def change(running: Running, made: dict, *, prefix: str = "", key=None, **body):
    path = f"{prefix}/v1/reservations/{made['serviceReservationId']}"
    body = {"idempotencyKey": "change-1", **body}
    return await running.call("PATCH", path, key=key, json=body)


async def blocked(running: Running, date: str = TONIGHT, slot: str = "19:30") -> list[str]:
    _, seen, _ = await running.call("GET", f"/v1/availability?date={date}&slot={slot}")
    return [table["name"] for table in seen["tables"] if table["blockedBy"]]


async def events(running: Running) -> list[str]:
    return running.live.database.peek(
        lambda reader: [name for (name,) in reader.rows("SELECT type FROM event ORDER BY seq")]
    )


async def test_a_changed_reservation_moves_and_keeps_its_code_and_links(running):
    made = await book(running)
    running.clock.advance(60)
    status, changed, _ = await change(
        running, made, date=TOMORROW, slot="22:00", tableId=table_id("T2"), guests=3,
        customer={"name": "Omar Alami", "phone": "+212 600 000 002"}, notes="Window",
        externalRef="R-9",
    )  # fmt: skip

    assert status == 200
    assert {name: changed[name] for name in made if name in changed} == {
        name: value for name, value in made.items() if name in changed
    }
    assert (changed["date"], changed["slot"], changed["table"]["id"], changed["guests"]) == (
        TOMORROW, "22:00", table_id("T2"), 3,
    )  # fmt: skip
    assert (changed["customerFirstName"], changed["externalRef"]) == ("Omar", "R-9")
    assert changed["customerPhone"] == "+212 600 000 002"
    assert changed["updatedAt"] == "2026-11-21T19:01:00.000Z"
    _, listed, _ = await running.call("GET", f"/v1/reservations/{changed['id']}")
    assert listed.items() <= changed.items()
    assert (await blocked(running), await blocked(running, TOMORROW, "22:00")) == (
        [], ["Terrasse 2"],
    )  # fmt: skip
    assert await events(running) == ["reservation.created", "reservation.updated"]


async def test_omitted_members_are_kept_and_null_clears_them(running):
    made = await book(running, notes="Window", externalRef="R-1")
    await change(running, made, guests=4)
    _, kept, _ = await running.call("GET", f"/v1/reservations/{made['serviceReservationId']}")
    assert (kept["slot"], kept["externalRef"], kept["guests"]) == ("19:30", "R-1", 4)

    _, emptied, _ = await change(
        running, made, slot=None, externalRef=None, notes=None, idempotencyKey="2"
    )

    assert (emptied["slot"], "externalRef" in emptied) == (None, False)
    assert await blocked(running, slot="22:00") == ["Terrasse 1"]


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"date": "2026-11-20"}, "INVALID_DATE", "date"),
        ({"date": None}, "INVALID_DATE", "date"),
        ({"slot": "12:00"}, "INVALID_SLOT", "slot"),
        ({"tableId": "T1"}, "INVALID_TABLE", "tableId"),
        ({"guests": "3"}, "INVALID_GUESTS", "guests"),
        ({"guests": 9}, "GUESTS_OUT_OF_RANGE", "guests"),
        ({"customer": None}, "CUSTOMER_NAME_REQUIRED", "customer.name"),
        ({"customer": {"name": "Omar"}}, "CUSTOMER_CONTACT_REQUIRED", "customer.email"),
        ({"idempotencyKey": " "}, "IDEMPOTENCY_KEY_REQUIRED", "idempotencyKey"),
        ({"notifyCustomers": False}, "VALIDATION_ERROR", "notifyCustomers"),
        ({"ifUpdatedAt": "today"}, "VALIDATION_ERROR", "ifUpdatedAt"),
        ({"additionalTableIds": [table_id("T1")]}, "VALIDATION_ERROR", "additionalTableIds"),
        ({"additionalTableIds": "T2"}, "VALIDATION_ERROR", "additionalTableIds"),
        ({"tableId": table_id("T6")}, "TABLE_NOT_BOOKABLE", "tableId"),
        ({"tableId": table_id("T2")}, "TABLE_TAKEN", None),
    ],
)
async def test_a_refused_change_leaves_the_reservation_unchanged(running, body, code, field):
    made = await book(running)
    await book(running, tableId=table_id("T2"), idempotencyKey="other")
    path = f"/v1/reservations/{made['serviceReservationId']}"
    before = await running.call("GET", path)

    _, refusal, _ = await change(running, made, **{"guests": 3, "notes": "new", **body})

    assert (refusal["code"], refusal.get("field")) == (code, field)
    assert (await running.call("GET", path))[:2] == before[:2]
    assert await blocked(running) == ["Terrasse 1", "Terrasse 2"]
    assert await events(running) == ["reservation.created"] * 2


async def test_a_reservation_of_another_key_or_source_is_unknown(running):
    made = await book(running)
    status, body, _ = await change(running, made, key=await a_key(running.live), guests=3)
    assert (status, body["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("column", ["status = 'cancelled'", "status = 'declined'",
                                    "status = 'completed'", "checked_in_at = 1"])  # fmt: skip
async def test_a_closed_or_arrived_reservation_cannot_be_changed(running, column):
    made = await book(running)
    sql = f"UPDATE reservation SET {column}"  # noqa: S608 - a constant
    await running.live.database.write(lambda tx: tx.execute(sql))
    status, body, _ = await change(running, made, notes="late")
    assert (status, body["code"]) == (409, "NOT_CHANGEABLE")


async def test_a_change_based_on_an_outdated_state_is_refused(running):
    made = await book(running)
    running.clock.advance(1)
    _, first, _ = await change(running, made, guests=3, ifUpdatedAt="2026-11-21T19:00:00.000Z")
    running.clock.advance(1)
    status, body, _ = await change(
        running, made, guests=4, idempotencyKey="2", ifUpdatedAt="2026-11-21T19:00:00.000Z"
    )
    assert (status, body["code"]) == (409, "CHANGED")
    again = {"guests": 4, "idempotencyKey": "2", "ifUpdatedAt": first["updatedAt"]}
    assert (await change(running, made, **again))[0] == 200


async def test_a_repeated_change_changes_nothing_and_is_marked_as_replayed(running):
    made = await book(running)
    _, first, _ = await change(running, made, guests=3)
    status, again, headers = await change(running, made, guests=3)
    assert (status, again, headers["Idempotent-Replayed"]) == (200, first, "true")
    assert "Idempotency-Body-Mismatch" not in headers

    _, other, headers = await change(running, made, guests=4)

    assert (other["guests"], headers["Idempotency-Body-Mismatch"]) == (3, "true")
    assert await events(running) == ["reservation.created", "reservation.updated"]


async def test_an_idempotency_key_of_another_call_or_reservation_is_not_a_replay(running):
    one = await book(running)
    other = await book(running, tableId=table_id("T2"), idempotencyKey="other")
    answers = [await change(running, made, guests=3, idempotencyKey="booking-1")
               for made in (one, other)]  # fmt: skip
    assert [(status, body["guests"]) for status, body, _ in answers] == [(200, 3), (200, 3)]


async def test_twenty_equal_simultaneous_changes_are_applied_once(running):
    made = await book(running)
    answers = await asyncio.gather(*(change(running, made, slot="22:00") for _ in range(20)))
    assert {status for status, _, _ in answers} == {200}
    assert sum("Idempotent-Replayed" in headers for _, _, headers in answers) == 19
    assert await events(running) == ["reservation.created", "reservation.updated"]


@pytest.mark.parametrize(
    ("first", "notify", "kinds"),
    [(None, None, ["confirmation", "changed"]), (None, False, ["confirmation"]),
     (False, None, []), (False, True, ["changed"])],
)  # fmt: skip
async def test_the_guest_gets_one_email_about_a_change(running, first, notify, kinds):
    made = await book(running, "/test", customer=MAILED, notifyCustomer=first)
    body = {} if notify is None else {"notifyCustomer": notify}

    for _ in range(2):
        _, changed, _ = await change(running, made, prefix="/test", slot="22:00", **body)
        assert changed["notifications"]["email"] == (
            "sent" if "changed" in kinds else "skipped"
        )  # fmt: skip

    sent = running.test.database.peek(
        lambda reader: [kind for (kind,) in reader.rows("SELECT kind FROM email ORDER BY rowid")]
    )
    assert sent == kinds


async def test_a_change_that_does_not_concern_the_guest_sends_no_email(running):
    made = await book(running, "/test", customer=MAILED)
    _, changed, _ = await change(running, made, prefix="/test", notes="Window", externalRef="R-2")
    assert changed["notifications"]["email"] == "skipped"


async def test_staff_can_change_the_evening_and_the_door_lists_the_party_there(running):
    made = await book(running)
    found = await running.live.database.write(
        change_reservation, made["serviceReservationId"], {"date": date(2026, 11, 22)},
        actor="staff:x",
    )  # fmt: skip
    assert (found.reservation.date, found.email_id) == (TOMORROW, None)
    assert await events(running) == ["reservation.created", "reservation.updated"]


async def test_a_change_without_a_slot_keeps_a_time_that_is_no_longer_offered(running):
    made = await book(running)
    await running.live.database.write(lambda tx: tx.execute("DELETE FROM slot"))
    status, changed, _ = await change(running, made, tableId=table_id("T2"), guests=3)
    assert (status, changed["table"]["id"], changed["slot"]) == (200, table_id("T2"), "19:30")


async def test_only_endpoints_that_subscribed_to_the_update_event_receive_it(running):
    for number, events_ in enumerate((None, ["reservation.updated"])):
        body = {"url": f"https://receiver.example/{number}", "events": events_}
        await running.call("POST", "/v1/webhooks", json=body)
    await change(running, await book(running), guests=3)

    told = running.live.database.peek(lambda reader: list(reader.rows(
        """SELECT p.url, e.type FROM delivery d JOIN event e ON e.seq = d.event_seq
           JOIN endpoint p ON p.id = d.endpoint_id ORDER BY d.seq""")))  # fmt: skip
    assert told == [
        ("https://receiver.example/0", "reservation.created"),
        ("https://receiver.example/1", "reservation.updated"),
    ]
