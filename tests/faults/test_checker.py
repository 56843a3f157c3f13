"""The checker can fail: each forgery of a true history, or of what is stored, is seen."""

import asyncio
import copy
import dataclasses
import shutil

import apsw
import pytest

from tests.faults.checker import complaints
from tests.faults.history import Call
from tests.faults.rows import read_rows
from tests.faults.world import faulty_world

GHOST = "00000000-0000-4000-8000-000000000000"


@dataclasses.dataclass
class Found:
    """What was left after a short, unharmed life: the log, the deliveries and the file."""

    history: object
    received: list
    database: object

    def complaints(self):
        return complaints(self.history, read_rows(self.database), self.received, final=True)

    def forge(self, *statements, **values):
        """Change the file behind the box's back, past whatever would refuse it."""
        connection = apsw.Connection(str(self.database))
        connection.execute("DROP TRIGGER IF EXISTS reservation_hold_insert")
        connection.execute("DROP TRIGGER IF EXISTS reservation_hold_update")
        connection.execute("DROP INDEX IF EXISTS reservation_hold")
        connection.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            connection.execute(statement, values)
            assert connection.changes() > 0, statement
        connection.close()


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    return asyncio.run(live(tmp_path_factory.mktemp("life")))


async def live(folder):
    async with faulty_world(folder, 7) as world:
        await world.load_until(1.0, lambda: None)
        await world.settle()
        await asyncio.to_thread(world.box.stop)
        return Found(world.history, world.receiver.received, world.founded.data / "live.db")


@pytest.fixture
def found(life, tmp_path):
    """A life of one's own, to be forged."""
    file = shutil.copy(life.database, tmp_path / "live.db")
    return Found(copy.deepcopy(life.history), list(life.received), file)


def first(calls, condition=lambda _: True):
    """The first acknowledged call for whose first answer the condition holds."""
    return next(
        (name, call) for name, call in calls.items() if call.granted and condition(call.granted[0])
    )


@pytest.mark.proves("I1", "I2", "I3", "I4", "I5", "I6", "I7")
def test_an_unharmed_life_gives_no_cause_for_complaint(found):
    assert found.complaints() == []


def test_an_acknowledged_reservation_that_is_not_in_the_database_is_missed(found):
    _, call = first(found.history.bookings)
    body = call.granted[0] | {"serviceReservationId": GHOST}
    found.history.bookings["forged"] = Call(call.request, [(201, body)])

    assert found.complaints() == ["I1: the booking forged was acknowledged and is not there"]


def test_a_reservation_that_nobody_asked_for_is_seen(found):
    key, _ = first(found.history.bookings)
    del found.history.bookings[key]

    assert f"I1: nobody asked for the reservation of key {key}" in found.complaints()


def test_a_refused_booking_that_came_true_is_seen(found):
    key, call = first(found.history.bookings)
    call.answers = [(409, {"code": "TABLE_TAKEN"})]

    assert found.complaints() == [f"I1: the booking {key} was only ever refused and is there"]


def test_a_replay_with_another_id_is_seen(found):
    key, call = first(found.history.bookings)
    call.answers.append((200, call.granted[0] | {"serviceReservationId": GHOST}))

    assert found.complaints() == [f"I3: the booking {key} was answered in two ways"]


def test_two_creations_under_one_key_are_seen(found):
    key, call = first(found.history.bookings)
    call.answers.append((201, call.granted[0]))

    assert found.complaints() == [f"I3: the booking {key} was made twice"]


def test_an_acknowledged_cancellation_that_did_not_last_is_missed(found):
    id_, _ = first(found.history.cancels)
    found.forge(
        "UPDATE reservation SET status = 'confirmed' WHERE id = :id",
        "DELETE FROM delivery WHERE event_seq IN (SELECT seq FROM event"
        " WHERE type = 'reservation.cancelled' AND reservation_id = :id)",
        "DELETE FROM event WHERE type = 'reservation.cancelled' AND reservation_id = :id",
        id=id_,
    )

    expected = f"I1: the cancellation of {id_} was acknowledged and undone"
    assert expected in found.complaints()


def test_a_cancellation_that_nobody_asked_for_is_seen(found):
    id_, _ = first(found.history.cancels)
    del found.history.cancels[id_]

    assert found.complaints() == [f"I1: nobody cancelled {id_}"]


def green(verdict):
    return verdict["result"] == "checked_in"


def test_an_acknowledged_check_in_that_is_gone_or_moved_is_missed(found):
    _, call = first(found.history.scans, green)
    id_ = call.request["reservationId"]

    found.forge("UPDATE reservation SET checked_in_at = checked_in_at + 1 WHERE id = :id", id=id_)
    assert found.complaints() == [f"I6: the check-in of {id_} was moved"]

    found.forge("UPDATE reservation SET checked_in_at = NULL WHERE id = :id", id=id_)
    said = f"I1: the check-in of {id_} was acknowledged and is not there"
    assert said in found.complaints()


def test_a_guest_who_was_let_in_twice_is_seen(found):
    _, call = first(found.history.scans, green)
    found.history.scans["forged"] = copy.deepcopy(call)

    assert found.complaints() == [f"I6: {call.request['reservationId']} was let in 2 times"]


def test_two_holders_of_one_table_at_one_time_are_seen(found):
    found.forge(
        "UPDATE reservation SET status = 'confirmed', slot = NULL, date = '2030-01-01',"
        " table_id = (SELECT min(id) FROM venue_table) WHERE seq IN (1, 2)",
    )

    assert any(said.startswith("I2: two hold") for said in found.complaints())


def test_an_event_or_a_delivery_that_was_not_written_is_missed(found):
    found.forge(
        "DELETE FROM delivery WHERE event_seq = 1",
        "DELETE FROM event WHERE seq = 2",
    )

    said = found.complaints()

    assert "I4: event 1 has not one delivery for each subscriber" in said
    assert any(one.endswith("happened and was not announced") for one in said)


def test_a_delivery_that_never_came_or_still_waits_is_missed(found):
    lost, *found.received = found.received
    found.received = [one for one in found.received if one.delivery != lost.delivery]
    found.forge(
        "UPDATE delivery SET state = 'pending' WHERE seq ="
        " (SELECT min(seq) FROM delivery WHERE id <> :id)",
        id=lost.delivery,
    )

    said = found.complaints()

    assert f"I4: delivery {lost.delivery} is called delivered and never came" in said
    assert any(one.endswith("ended as pending") for one in said)


def test_a_delivery_whose_id_changed_or_whose_signature_is_forged_is_seen(found):
    one = found.received[0]
    other = dataclasses.replace(one, delivery=GHOST)
    unsigned = dataclasses.replace(one, signature_held=False)
    found.received += [other, unsigned]

    said = found.complaints()

    assert f"I5: header and body of {GHOST} differ" in said
    assert "I5: one event came to one endpoint under two ids" in said
    assert f"I5: the signature of {one.delivery} did not hold" in said


def test_a_damaged_page_and_an_orphan_are_seen(found):
    found.forge("UPDATE delivery SET endpoint_id = 'nobody' WHERE seq = 1")
    assert any("foreign_key_check" in said for said in found.complaints())

    rows = read_rows(found.database)
    rows.integrity = ["row 3 missing from index reservation_list"]
    assert any("integrity_check" in said for said in complaints(found.history, rows))
