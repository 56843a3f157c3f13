"""Cancelling, by whom and in which state (contract section 3; decisions.md, States)."""

import pytest

from appliance.actions.cancel import cancel, cancel_own
from appliance.actions.enter import enter_by_staff
from appliance.actions.issue_key import issue_key
from appliance.actions.reserve import reserve
from appliance.box import Box
from appliance.errors import NotFound, WrongState
from appliance.model.api_key import ApiKey
from appliance.store.connection import Reader
from appliance.store.keys import find_key
from appliance.store.reservations import get_reservation, update_reservation
from tests.builders import a_booking


async def a_reservation(box: Box) -> str:
    return (await box.live.database.write(enter_by_staff, a_booking(), actor="staff:x")).id


async def a_stored_key(box: Box) -> ApiKey:
    issued = await box.live.database.write(issue_key, "live", "Partner")
    found = await box.live.database.read(find_key, issued.id)
    assert found is not None
    return found


def only_reservation(reader: Reader) -> str:
    [(id_,)] = reader.rows("SELECT id FROM reservation")
    return id_


def cancellations(box: Box) -> int:
    sql = "SELECT count(*) FROM event WHERE type = 'reservation.cancelled'"
    return box.live.database.peek(lambda reader: reader.value(sql))


@pytest.mark.proves(
    "decision: Deleting what is checked in or completed, or no UUID?",
    "decision: What becomes of a confirmed reservation?",
)
@pytest.mark.parametrize("status", ["requested", "confirmed", "completed", "pending", "partial"])
async def test_whatever_holds_its_table_can_be_cancelled_and_is_announced_once(box, status: str):
    id_ = await a_reservation(box)
    await box.live.database.write(update_reservation, id_, status=status)

    done = await box.live.database.write(cancel, id_, actor="guest")

    assert (done.already, done.reservation.status) == (False, "cancelled")
    assert done.reservation.cancelled_at == box.clock.now()
    assert cancellations(box) == 1
    await a_reservation(box)  # the table is free again


async def test_a_second_time_changes_nothing_and_announces_nothing(box: Box):
    id_ = await a_reservation(box)
    first = await box.live.database.write(cancel, id_, actor="guest")
    box.clock.advance(3600)

    second = await box.live.database.write(cancel, id_, actor="staff:x")

    assert second.already
    assert second.reservation == first.reservation
    assert cancellations(box) == 1


async def test_the_check_in_of_a_cancelled_reservation_is_kept(box: Box):
    id_ = await a_reservation(box)
    await box.live.database.write(update_reservation, id_, checked_in_at=5, arrived=2)

    done = await box.live.database.write(cancel, id_, actor="guest")

    assert (done.reservation.checked_in_at, done.reservation.arrived) == (5, 2)


async def test_what_was_declined_cannot_be_cancelled(box: Box):
    id_ = await a_reservation(box)
    await box.live.database.write(update_reservation, id_, status="declined")

    with pytest.raises(WrongState, match="declined"):
        await box.live.database.write(cancel, id_, actor="staff:x")

    assert cancellations(box) == 0


async def test_a_partner_cancels_its_own_and_nobody_elses(box: Box):
    mine, other = await a_stored_key(box), await a_stored_key(box)
    await box.live.database.write(
        reserve, "live", mine, a_booking(slot="22:00", idempotency_key="k")
    )
    own = await box.live.database.read(only_reservation)
    by_staff = await a_reservation(box)

    for key, id_ in ((other, own), (mine, by_staff), (mine, "nobody")):
        with pytest.raises(NotFound):
            await box.live.database.write(cancel_own, key, id_)
    assert (await box.live.database.read(get_reservation, by_staff)).status == "confirmed"
    done = await box.live.database.write(cancel_own, mine, own)

    assert done.reservation.status == "cancelled"
    assert cancellations(box) == 1
