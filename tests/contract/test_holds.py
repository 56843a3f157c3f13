"""Holds (`/v1/holds`) and groups (`additionalTableIds`) of several tables."""

import asyncio

import pytest

from appliance.reservations.holds import release_expired
from tests.builders import TONIGHT, a_body, a_key, table_id
from tests.conftest import Running

T1, T2, T3 = (table_id(number) for number in ("T1", "T2", "T3"))


async def hold(running: Running, *, key=None, **changes):
    body = {"tableIds": [T1], "date": TONIGHT, "slot": "19:30", "guests": 2, "seconds": 60}
    return await running.call("POST", "/v1/holds", key=key, json=body | changes)


async def book(running: Running, **changes):
    return await running.call("POST", "/v1/reservations", json=a_body(**changes))


async def blocked(running: Running, slot: str = "19:30") -> dict[str, str]:
    _, seen, _ = await running.call("GET", f"/v1/availability?date={TONIGHT}&slot={slot}")
    return {table["id"]: table["blockedBy"] for table in seen["tables"] if table["blockedBy"]}


def count(running: Running, table: str) -> int:
    sql = f"SELECT count(*) FROM {table}"  # noqa: S608 - a constant
    count_: int = running.live.database.peek(lambda reader: reader.value(sql))
    return count_


async def test_a_hold_blocks_its_table_without_an_event_and_can_become_a_reservation(running):
    status, held, _ = await hold(running)
    assert (status, held["expiresAt"]) == (201, "2026-11-21T19:01:00.000Z")
    assert await blocked(running) == {T1: "partner"}
    assert count(running, "event") == 0
    assert (await book(running))[1]["code"] == "TABLE_TAKEN"

    status, _, _ = await book(running, holdId=held["holdId"])

    assert status == 201
    assert (count(running, "hold"), count(running, "open_hold")) == (1, 0)
    assert (await book(running, holdId=held["holdId"]))[0] == 200  # a replay needs no hold


async def test_a_hold_expires_on_time_even_if_it_has_not_been_deleted(running):
    _, held, _ = await hold(running)
    running.clock.advance(59.999)
    assert await blocked(running) == {T1: "partner"}
    running.clock.advance(0.001)
    assert await blocked(running) == {}

    status, refusal, _ = await book(running, holdId=held["holdId"])
    assert (status, refusal["code"]) == (409, "HOLD_EXPIRED")
    assert (await book(running))[0] == 201
    assert count(running, "hold") == 1


async def test_expired_holds_are_deleted(running):
    await hold(running, tableIds=[T1, T2], guests=4)
    running.clock.advance(60)
    await running.live.database.write(release_expired)
    assert (count(running, "hold"), count(running, "open_hold")) == (0, 0)


async def test_a_hold_does_not_last_longer_after_the_clock_was_set_back(running):
    await hold(running)
    running.clock.advance(-86_400)
    assert await blocked(running) == {}
    assert (await book(running))[0] == 201


async def test_a_released_hold_frees_its_tables_and_only_its_own_key_can_release_it(running):
    _, held, _ = await hold(running, tableIds=[T1, T2], guests=4)
    path = f"/v1/holds/{held['holdId']}"
    status, _, _ = await running.call("DELETE", path, key=await a_key(running.live))
    assert (status, len(await blocked(running))) == (404, 2)
    status, body, _ = await running.call("DELETE", path)
    assert (status, body) == (200, {"holdId": held["holdId"], "released": True})
    assert await blocked(running) == {}
    assert (await running.call("DELETE", path))[0] == 404


@pytest.mark.parametrize("wish", [{"tableId": T2}, {"slot": "22:00"}, {"date": "2026-11-22"},
                                  {"additionalTableIds": [T2], "guests": 4}])  # fmt: skip
async def test_a_hold_for_another_table_or_time_is_refused_and_kept(running, wish):
    _, held, _ = await hold(running)
    status, refusal, _ = await book(running, holdId=held["holdId"], **wish)
    assert (status, refusal["code"], refusal["field"]) == (400, "VALIDATION_ERROR", "holdId")
    assert await blocked(running) == {T1: "partner"}


@pytest.mark.parametrize(
    ("wish", "code", "field"),
    [
        ({"tableIds": []}, "INVALID_TABLE", "tableIds"),
        ({"tableIds": ["T1"]}, "INVALID_TABLE", "tableIds[0]"),
        ({"tableIds": T1}, "VALIDATION_ERROR", "tableIds"),
        ({"tableIds": [T1, T1]}, "VALIDATION_ERROR", "tableIds"),
        ({"seconds": 601}, "VALIDATION_ERROR", "seconds"),
        ({"seconds": None}, "VALIDATION_ERROR", "seconds"),
        ({"minutes": 5}, "VALIDATION_ERROR", "minutes"),
        ({"guests": 5}, "GUESTS_OUT_OF_RANGE", "guests"),
        ({"date": "2020-01-01"}, "INVALID_DATE", "date"),
    ],
)
async def test_an_invalid_hold_is_refused(running, wish, code, field):
    status, refusal, _ = await hold(running, **wish)
    assert (status, refusal["code"], refusal["field"]) == (400, code, field)
    assert count(running, "hold") == 0


@pytest.mark.parametrize(
    ("second", "status", "code"),
    [
        ("2f1c8d5e-0000-4000-8000-000000000000", 404, "TABLE_NOT_FOUND"),
        (table_id("T6"), 409, "TABLE_NOT_BOOKABLE"),
        (T2, 409, "TABLE_TAKEN"),
    ],
)
async def test_a_refused_hold_names_the_occupied_table(running, second, status, code):
    await book(running, tableId=T2)
    answered, refusal, _ = await hold(running, tableIds=[T1, second], guests=4)
    assert (answered, refusal["code"], refusal["field"]) == (status, code, "tableIds[1]")


async def test_each_key_can_have_at_most_twenty_open_holds(running):
    days = [f"2026-12-{day:02d}" for day in range(1, 22)]
    answers = [await hold(running, date=day) for day in days]
    assert [status for status, _, _ in answers] == [201] * 20 + [409]
    assert answers[-1][1]["code"] == "TOO_MANY_HOLDS"
    assert (await hold(running, key=await a_key(running.live)))[0] == 201
    running.clock.advance(60)
    assert (await hold(running, date=days[-1]))[0] == 201


async def test_a_group_has_one_access_code_and_all_of_its_tables(running):
    _, made, _ = await book(running, additionalTableIds=[T2, T3], guests=12)

    assert set(await blocked(running)) == {T1, T2, T3}
    _, found, _ = await running.call("GET", f"/v1/reservations/{made['serviceReservationId']}")
    assert found["table"]["id"] == T1
    assert [table["id"] for table in found["tables"]] == [T1, T2, T3]
    await running.call("DELETE", f"/v1/reservations/{made['serviceReservationId']}")
    assert await blocked(running) == {}
    _, found, _ = await running.call("GET", f"/v1/reservations/{made['serviceReservationId']}")
    assert len(found["tables"]) == 3


@pytest.mark.parametrize(("guests", "status"), [(3, 400), (4, 201), (8, 201), (9, 400)])
async def test_the_capacities_of_a_groups_tables_are_added_up(running, guests, status):
    answered, _, _ = await book(running, additionalTableIds=[T2], guests=guests)
    assert answered == status


@pytest.mark.parametrize(
    ("more", "status", "code", "field"),
    [
        ([T1], 400, "VALIDATION_ERROR", "additionalTableIds"),
        (["T2"], 400, "INVALID_TABLE", "additionalTableIds[0]"),
        ([T2] * 21, 400, "VALIDATION_ERROR", "additionalTableIds"),
        ([T2, "2f1c8d5e-0000-4000-8000-000000000000"], 404, "TABLE_NOT_FOUND",
         "additionalTableIds[1]"),
        ([table_id("T6")], 409, "TABLE_NOT_BOOKABLE", "additionalTableIds[0]"),
        ([T3], 409, "TABLE_TAKEN", "additionalTableIds[0]"),
    ],
)  # fmt: skip
async def test_a_group_is_booked_completely_or_not_at_all(running, more, status, code, field):
    await book(running, tableId=T3, idempotencyKey="other")
    answered, refusal, _ = await book(running, additionalTableIds=more, guests=4)
    assert (answered, refusal["code"], refusal.get("field")) == (status, code, field)
    assert set(await blocked(running)) == {T3}


async def test_a_group_can_change_single_tables_and_shrink_to_one(running):
    _, made, _ = await book(running, additionalTableIds=[T2], guests=4)
    path = f"/v1/reservations/{made['serviceReservationId']}"
    for number, (wish, tables) in enumerate((
        ({"additionalTableIds": [T2, T3], "guests": 6}, {T1, T2, T3}),
        ({"tableId": T2, "additionalTableIds": [T1]}, {T1, T2}),
        ({"slot": "22:00"}, {T1, T2}),
        ({"additionalTableIds": None, "guests": 2}, {T2}),
    )):  # fmt: skip
        status, body, _ = await running.call(
            "PATCH", path, json={"idempotencyKey": str(number), **wish}
        )
        assert (status, {table["id"] for table in body["tables"]}) == (200, tables)
        assert set(await blocked(running, body["slot"])) == tables


async def test_simultaneous_holds_bookings_and_changes_leave_one_holder_per_table(running):
    _, other, _ = await book(running, tableId=T2, idempotencyKey="other")
    path = f"/v1/reservations/{other['serviceReservationId']}"
    wishes = [
        *(hold(running) for _ in range(10)),
        *(book(running, idempotencyKey=f"k{n}", additionalTableIds=[T3], guests=4)
          for n in range(10)),
        *(running.call("PATCH", path, json={"tableId": T1, "idempotencyKey": f"p{n}"})
          for n in range(10)),
    ]  # fmt: skip
    answers = await asyncio.gather(*wishes)
    won = [status in {200, 201} for status, _, _ in answers]
    kinds = sum(any(won[first : first + 10]) for first in (0, 10, 20))
    assert kinds == 1
    refused = {
        body["code"] for (_, body, _), has_won in zip(answers, won, strict=True) if not has_won
    }
    assert refused == {"TABLE_TAKEN"}
