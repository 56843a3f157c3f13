"""The venue as partners see it (contract sections 2.1 to 2.3), and the limits of its list."""

import pytest

from tests.builders import TONIGHT, table_id
from tests.conftest import Running


async def execute(running: Running, sql: str, **values: object) -> None:
    await running.live.database.write(lambda tx: tx.execute(sql, values))


@pytest.mark.proves("decision: Which values has table.type?")
@pytest.mark.parametrize("kind", ["standard", "vip", "booth", "bar", "terrace", "péniche"])
async def test_the_type_of_a_table_is_an_open_text(running: Running, kind: str):
    await execute(running, "UPDATE venue_table SET type = :kind WHERE number = 'T1'", kind=kind)

    _, body, _ = await running.call("GET", "/v1/venue")

    assert body["tables"][0]["type"] == kind


@pytest.mark.proves("decision: What is in policies?")
@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (None, None),
        ('{"minimumAge": 18, "cancellation": "18:00"}',
         {"minimumAge": 18, "cancellation": "18:00"}),
        ('{"house": {"rule": ["any", 1]}}', {"house": {"rule": ["any", 1]}}),
    ],
)  # fmt: skip
async def test_policies_are_null_or_an_open_object(running: Running, stored, shown):
    await execute(running, "UPDATE venue SET policies = :stored", stored=stored)

    _, body, _ = await running.call("GET", "/v1/venue")

    assert body["policies"] == shown


@pytest.mark.proves("decision: Which values has venue.status?")
@pytest.mark.parametrize("status", ["active", "inactive", "suspended"])
async def test_the_status_of_the_venue_is_told_and_reading_goes_on(running: Running, status: str):
    await execute(running, "UPDATE venue SET status = :status", status=status)

    _, body, _ = await running.call("GET", "/v1/venue")
    listed, _, _ = await running.call("GET", "/v1/reservations")
    available, _, _ = await running.call("GET", f"/v1/availability?date={TONIGHT}")

    assert body["venue"]["status"] == status
    assert (listed, available) == (200, 200)


async def test_a_table_that_is_not_bookable_is_shown_as_such(running: Running):
    _, body, _ = await running.call("GET", "/v1/venue")

    bookable = {table["number"]: table["bookable"] for table in body["tables"]}
    assert bookable == {"T1": True, "T2": True, "T3": True, "T4": True, "T5": True, "T6": False}
    assert body["tables"][5]["id"] == table_id("T6")


@pytest.mark.proves("interface 8: Page size", "interface 8: Page number")
@pytest.mark.parametrize(
    ("query", "page", "limit"),
    [("", 1, 50), ("?limit=1", 1, 1), ("?limit=200", 1, 200), ("?page=2", 2, 50)],
)
async def test_pages_begin_at_1_and_hold_50_unless_asked_for_1_to_200(
    running: Running, query: str, page: int, limit: int
):
    status, body, _ = await running.call("GET", f"/v1/reservations{query}")

    assert (status, body["page"], body["limit"], body["total"]) == (200, page, limit, 0)


@pytest.mark.parametrize("status", ["inactive", "suspended"])
async def test_no_table_of_a_venue_that_is_not_active_is_available(running: Running, status: str):
    await execute(running, "UPDATE venue SET status = :status", status=status)

    for slot in ({}, {"slot": "19:30"}):
        found, body, _ = await running.call(
            "GET", "/v1/availability", params={"date": TONIGHT, **slot}
        )
        assert (found, len(body["tables"])) == (200, 6)
        assert not any(table["available"] for table in body["tables"])
