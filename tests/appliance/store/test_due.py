"""What the clock asks of the reservations, again and again, touches only those that it is about."""

from datetime import date

from appliance.store.due import list_unreminded
from tests.appliance.store.query_plans import plans_of


async def test_who_may_be_reminded_is_found_without_those_whose_partner_writes_itself(box):
    plans = await plans_of(
        box.live.database, lambda tx: list(list_unreminded(tx, date(2026, 11, 21)))
    )

    assert any("reservation_remind" in line for line in plans), plans
    assert all("SCAN" not in line and "TEMP B-TREE" not in line for line in plans), plans
