"""The checker detects every change of the history or the database."""

import asyncio
import copy
import dataclasses
import shutil

import apsw
import pytest

from tests.promises.checker import Call, complaints, read_rows
from tests.promises.world import faulty_world

pytestmark = [pytest.mark.slow, pytest.mark.process]

GHOST = "00000000-0000-4000-8000-000000000000"


@dataclasses.dataclass
class Found:
    """The state after a short run without faults: history, deliveries and database file."""

    history: object
    received: list
    database: object

    def complaints(self):
        return complaints(self.history, read_rows(self.database), self.received, final=True)

    def forge(self, *statements, **values):
        """Change the database file directly, without triggers and constraints."""
        connection = apsw.Connection(str(self.database))
        connection.execute("DROP TRIGGER IF EXISTS hold_insert")
        connection.execute("DROP TRIGGER IF EXISTS hold_update")
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
        await world.load_until(1.0, lambda: None, at_least=6)
        await world.settle()
        await asyncio.to_thread(world.box.stop)
        return Found(world.history, world.receiver.received, world.founded.data / "live.db")


@pytest.fixture
def found(life, tmp_path):
    """A copy of the run, to be changed."""
    file = shutil.copy(life.database, tmp_path / "live.db")
    return Found(copy.deepcopy(life.history), list(life.received), file)


def first(calls, condition=lambda _: True):
    """Return the first acknowledged call whose first answer meets the condition."""
    return next(
        (name, call) for name, call in calls.items() if call.granted and condition(call.granted[0])
    )


def test_the_checker_finds_nothing_wrong_after_a_run_without_faults(found):
    assert found.complaints() == []


def green(verdict):
    return verdict["result"] == "checked_in"


# Each function forges one thing and returns the complaint that the checker must make.


def a_booking_that_was_granted_is_missing(found):
    _, call = first(found.history.bookings)
    body = call.granted[0] | {"serviceReservationId": GHOST}
    found.history.bookings["forged"] = Call(call.request, [(201, body)])
    return "I1: the booking forged was acknowledged and is not there"


def a_booking_that_nobody_asked_for(found):
    key, _ = first(found.history.bookings)
    del found.history.bookings[key]
    return f"I1: nobody asked for the reservation of key {key}"


def a_refused_booking_that_is_there(found):
    key, call = first(found.history.bookings)
    call.answers = [(409, {"code": "TABLE_TAKEN"})]
    return f"I1: the booking {key} was only ever refused and is there"


def a_replay_with_another_id(found):
    key, call = first(found.history.bookings)
    call.answers.append((200, call.granted[0] | {"serviceReservationId": GHOST}))
    return f"I3: the booking {key} was answered in two ways"


def two_creations_under_one_key(found):
    key, call = first(found.history.bookings)
    call.answers.append((201, call.granted[0]))
    return f"I3: the booking {key} was made twice"


def a_cancellation_that_did_not_last(found):
    id_, _ = first(found.history.cancels)
    found.forge("UPDATE reservation SET status = 'confirmed' WHERE id = :id", id=id_)
    return f"I1: the cancellation of {id_} was acknowledged and undone"


def a_cancellation_that_nobody_asked_for(found):
    id_, _ = first(found.history.cancels)
    del found.history.cancels[id_]
    return f"I1: nobody cancelled {id_}"


def a_check_in_that_was_moved(found):
    id_ = first(found.history.scans, green)[1].request["reservationId"]
    found.forge("UPDATE reservation SET checked_in_at = checked_in_at + 1 WHERE id = :id", id=id_)
    return f"I6: the check-in of {id_} was moved"


def a_check_in_that_is_gone(found):
    id_ = first(found.history.scans, green)[1].request["reservationId"]
    found.forge("UPDATE reservation SET checked_in_at = NULL WHERE id = :id", id=id_)
    return f"I1: the check-in of {id_} was acknowledged and is not there"


def a_guest_who_was_let_in_twice(found):
    _, call = first(found.history.scans, green)
    found.history.scans["forged"] = copy.deepcopy(call)
    return f"I6: {call.request['reservationId']} was let in 2 times"


def two_holders_of_one_table(found):
    found.forge(
        "UPDATE reservation SET status = 'confirmed', slot = NULL, date = '2030-01-01',"
        " table_ids = NULL, table_id = (SELECT min(id) FROM venue_table) WHERE seq IN (1, 2)"
    )
    return "I2: two hold"


def a_hold_that_is_gone(found):
    found.forge("DELETE FROM hold")
    return "I2: the holds are not those of the reservations"


def an_event_without_its_delivery(found):
    found.forge("DELETE FROM delivery WHERE event_seq = 1")
    return "I4: event 1 has not one delivery for each subscriber"


def a_change_without_its_event(found):
    found.forge("DELETE FROM event WHERE seq = 2")
    return "happened and was not announced"


def a_delivery_that_never_came(found):
    lost = found.received[0].delivery
    found.received = [one for one in found.received if one.delivery != lost]
    return f"I4: delivery {lost} is called delivered and never came"


def a_delivery_that_still_waits(found):
    found.forge("UPDATE delivery SET state = 'pending' WHERE seq = 1")
    return "ended as pending"


def a_delivery_under_two_ids(found):
    found.received.append(dataclasses.replace(found.received[0], delivery=GHOST))
    return "I5: one event came to one endpoint under two ids"


def a_forged_signature(found):
    one = dataclasses.replace(found.received[0], signature_held=False)
    found.received.append(one)
    return f"I5: the signature of {one.delivery} did not hold"


def an_orphan(found):
    found.forge("UPDATE delivery SET endpoint_id = 'nobody' WHERE seq = 1")
    return "foreign_key_check"


@pytest.mark.parametrize(
    "forge",
    [
        a_booking_that_was_granted_is_missing, a_booking_that_nobody_asked_for,
        a_refused_booking_that_is_there, a_replay_with_another_id, two_creations_under_one_key,
        a_cancellation_that_did_not_last, a_cancellation_that_nobody_asked_for,
        a_check_in_that_was_moved, a_check_in_that_is_gone, a_guest_who_was_let_in_twice,
        two_holders_of_one_table, a_hold_that_is_gone, an_event_without_its_delivery,
        a_change_without_its_event,
        a_delivery_that_never_came, a_delivery_that_still_waits, a_delivery_under_two_ids,
        a_forged_signature, an_orphan,
    ],
)  # fmt: skip
def test_the_checker_detects_each_forgery(found, forge):
    complaint = forge(found)

    assert any(complaint in said for said in found.complaints())
