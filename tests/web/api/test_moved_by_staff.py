"""What staff change of a reservation reaches partners by reading; the contract has no event of it.

The guide says so (docs/partners.md, "Read the reservations").
"""

import pytest

from appliance.actions.amend_reservation import Amendment, amend_reservation, move_to_table
from appliance.store.reservations import get_reservation
from tests.builders import TONIGHT, a_body, table_id
from tests.conftest import Running

BY = "staff:yasmine"


@pytest.mark.proves("decision: Staff seat a party at another table, or change its size?")
async def test_a_party_at_another_table_is_in_the_list_and_no_event_says_so(running: Running):
    database = running.live.database
    _, booked, _ = await running.call("POST", "/v1/reservations", json=a_body())
    announced = await events(running)

    before = await database.read(get_reservation, booked["serviceReservationId"])
    moved = await database.write(move_to_table, before.id, before.version, table_id("T2"), actor=BY)
    party = Amendment(3, before.customer_name, None, before.customer_phone, None)
    await database.write(amend_reservation, moved.id, moved.version, party, actor=BY)

    _, listed, _ = await running.call("GET", f"/v1/reservations?from={TONIGHT}&to={TONIGHT}")
    (item,) = listed["items"]
    assert (item["table"]["id"], item["guests"]) == (table_id("T2"), 3)
    _, evening, _ = await running.call("GET", f"/v1/availability?date={TONIGHT}&slot=19:30")
    held = [table["id"] for table in evening["tables"] if table["blockedBy"]]
    assert held == [table_id("T2")]
    assert await events(running) == announced == ["reservation.created"]


async def events(running: Running) -> list[str]:
    return await running.live.database.read(
        lambda tx: [type_ for (type_,) in tx.rows("SELECT type FROM event ORDER BY seq")]
    )
