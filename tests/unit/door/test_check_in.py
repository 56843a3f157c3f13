"""Check-ins through the portal, and the resulting notices for the live feed."""

import pytest

from appliance.door.check_in import (
    DoorChanged,
    check_in,
)
from appliance.door.scan import Reading, Scan
from appliance.door.terminals import get_terminal, issue_terminal
from appliance.door.undo import undo_check_in
from appliance.staff.model import StaffMember
from tests.unit.arrivals import add_reservation

NORA = StaffMember("staff-1", "Nora", "host", has_password=True, created_at=0, disabled_at=None)


@pytest.fixture
async def portal(box):
    """The database, the terminal that stands for the portal, a guest, and the notices so far."""

    def furnish(tx):
        tx.insert("staff", {"id": NORA.id, "name": NORA.name, "role": NORA.role, "created_at": 0})
        return get_terminal(tx, issue_terminal(tx, "Portail")[0]), add_reservation(tx)

    notices = []
    box.live.database.on_commit(notices.extend)
    terminal, guest = await box.live.database.write(furnish)
    return box.live.database, terminal, guest, notices


async def test_other_doors_are_notified_of_each_arrival_and_departure_with_the_staff_name(
    portal,
):
    database, terminal, guest, notices = portal
    reading = Reading("list", (guest.id,))
    await database.write(check_in, terminal, Scan("one", reading, staff=NORA))
    again = await database.write(check_in, terminal, Scan("two", reading))  # changes nothing
    await database.write(check_in, terminal, Scan("three", reading, simulate=True))
    await database.write(undo_check_in, terminal, "one", None)

    told = [notice for notice in notices if isinstance(notice, DoorChanged)]

    assert [(n.verdict.result, n.verdict.admitted) for n in told] == [
        ("checked_in", 2), ("undone", -2),
    ]  # fmt: skip
    assert told[0].verdict.reservation.id == guest.id
    assert again.verdict.first_check_in == told[0].verdict.first_check_in
    assert again.verdict.first_check_in.by == "Nora"
