"""Staff answer a request: requested → confirmed or declined (decisions.md, States)."""

import pytest

from appliance.actions.answer_request import accept, decline
from appliance.actions.cancel import cancel
from appliance.actions.enter import enter_by_staff, enter_for_guest
from appliance.box import Box
from appliance.errors import NotFound, WrongState
from appliance.model.reservation import STATUSES
from appliance.store.reservations import get_reservation, update_reservation
from tests.builders import a_booking


async def a_request(box: Box, **changes) -> str:
    await box.live.database.write(lambda tx: tx.execute("UPDATE venue SET auto_confirm = 0"))
    return (await box.live.database.write(enter_for_guest, a_booking(**changes))).id


def story(box: Box) -> tuple[list[str], list[tuple[str, str]]]:
    """The events and the history, in order, after the creation."""
    return box.live.database.peek(
        lambda reader: (
            [type_ for (type_,) in reader.rows("SELECT type FROM event ORDER BY seq")][1:],
            list(reader.rows("SELECT what, actor FROM history ORDER BY seq"))[1:],
        )
    )


@pytest.mark.proves(
    "decision: What becomes of a request?", "decision: When is reservation.confirmed sent?"
)
async def test_accepting_confirms_and_announces_it_once(box: Box):
    id_ = await a_request(box)

    found = await box.live.database.write(accept, id_, actor="staff:x")

    assert found.status == "confirmed"
    assert story(box) == (["reservation.confirmed"], [("accepted", "staff:x")])


@pytest.mark.proves("decision: What becomes of a request?")
async def test_declining_frees_the_table_and_announces_it(box: Box):
    id_ = await a_request(box)

    found = await box.live.database.write(decline, id_, actor="staff:x")

    assert (found.status, found.holds) == ("declined", False)
    assert story(box) == (["reservation.declined"], [("declined", "staff:x")])
    await box.live.database.write(enter_by_staff, a_booking(), actor="staff:x")


@pytest.mark.proves("decision: What becomes of a request?")
async def test_a_request_may_be_cancelled_too(box: Box):
    id_ = await a_request(box)

    await box.live.database.write(cancel, id_, actor="guest")

    assert story(box) == (["reservation.cancelled"], [("cancelled", "guest")])


@pytest.mark.proves("decision: What becomes of a request?")
@pytest.mark.parametrize("answer", [accept, decline])
@pytest.mark.parametrize("status", [name for name in STATUSES if name != "requested"])
async def test_only_a_request_can_be_answered(box: Box, answer, status: str):
    id_ = await a_request(box)
    await box.live.database.write(update_reservation, id_, status=status)

    with pytest.raises(WrongState, match=status):
        await box.live.database.write(answer, id_, actor="staff:x")

    assert (await box.live.database.read(get_reservation, id_)).status == status
    assert story(box) == ([], [])


@pytest.mark.parametrize("answer", [accept, decline])
async def test_a_request_that_does_not_exist_is_not_found(box: Box, answer):
    with pytest.raises(NotFound):
        await box.live.database.write(answer, "nobody", actor="staff:x")
