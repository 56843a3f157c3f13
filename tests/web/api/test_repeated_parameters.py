"""A query parameter that comes twice: none of its values is dropped in silence."""

import pytest

from tests.builders import TONIGHT, a_body, table_id
from tests.conftest import Running


@pytest.mark.proves("V15")
@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        (f"availability?date={TONIGHT}&date=2026-11-22", "INVALID_DATE", "date"),
        (f"availability?date={TONIGHT}&slot=19:30&slot=22:00", "INVALID_SLOT", "slot"),
        ("reservations?limit=1&limit=2", "VALIDATION_ERROR", "limit"),
        (f"reservations?from={TONIGHT}&from={TONIGHT}", "INVALID_DATE", "from"),
    ],
)
async def test_one_value_is_not_chosen_among_several(
    running: Running, query: str, code: str, field: str
):
    status, body, _ = await running.call("GET", f"/v1/{query}")

    assert (status, body["code"], body["field"]) == (400, code, field)


async def test_statuses_may_come_one_by_one(running: Running):
    _, kept, _ = await running.call("POST", "/v1/reservations", json=a_body())
    other = a_body(tableId=table_id("T2"), idempotencyKey="b")
    _, freed, _ = await running.call("POST", "/v1/reservations", json=other)
    await running.call("DELETE", f"/v1/reservations/{freed['serviceReservationId']}")

    _, page, _ = await running.call("GET", "/v1/reservations?status=confirmed&status=cancelled")

    found = {item["id"] for item in page["items"]}
    assert found == {kept["serviceReservationId"], freed["serviceReservationId"]}
