"""Granting: the order of refusals, and that two holds never overlap, even without the code."""

import asyncio
from datetime import date

import apsw
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from appliance.box import Box
from appliance.core.errors import (
    DateOutOfRange,
    GuestsOutOfRange,
    InvalidSlot,
    TableNotBookable,
    TableNotFound,
    TableTaken,
    Unavailable,
    VenueInactive,
)
from appliance.core.settings import Settings
from appliance.core.tokens import Tokens
from appliance.database.connection import Transaction
from appliance.reservations.change import cancel
from appliance.reservations.create import grant
from appliance.reservations.holds import list_holds
from appliance.reservations.rows import get_reservation
from tests.builders import TONIGHT, a_booking, table_id
from tests.clocks import StoppedClock
from tests.conftest import opened_box
from tests.unit.arrivals import add_reservation
from tests.unit.rows import execute, history, read

SATURDAY, SUNDAY = date(2026, 11, 21), date(2026, 11, 22)
NOWHERE = "2f1c8d5e-0000-4000-8000-000000000000"
SLOTS = ("19:30", "22:00", "21:00", "16:00", None)


def grant_it(tx: Transaction, **changes) -> str:
    issued = grant(tx, a_booking(**changes), source="manual", status="confirmed", actor="staff:x")
    return issued.reservation_id


def add_slot(tx: Transaction, start: str, end: str) -> None:
    tx.insert(
        "slot",
        {"id": tx.new_id(), "position": 9, "name": start, "start": start, "end": end,
         "days_of_week": "[0, 1, 2, 3, 4, 5, 6]"},
    )  # fmt: skip


async def test_a_granted_reservation_has_an_event_a_history_entry_and_a_pass(box: Box):
    id_ = await box.live.database.write(grant_it)

    found = await box.live.database.read(get_reservation, id_)
    assert (found.date, found.slot, found.starts, found.ends) == (TONIGHT, "19:30", 1170, 1320)
    assert (found.status, found.source, found.arrived) == ("confirmed", "manual", 0)
    assert len(found.pass_id) == 8
    assert history(box) == [("created", "staff:x")]
    assert read(box, "SELECT type FROM event") == [("reservation.created",)]


async def test_refusals_are_checked_in_the_documented_order_and_store_nothing(box: Box):
    await box.live.database.write(grant_it)
    await execute(box, "UPDATE venue SET status = 'suspended'")
    wish = {"table_id": NOWHERE, "guests": 99, "slot": "12:00", "date": date(2020, 1, 4)}
    mendings = [
        (VenueInactive, None),
        (TableNotFound, {"table_id": table_id("T6")}),
        (TableNotBookable, {"table_id": table_id("T1")}),
        (GuestsOutOfRange, {"guests": 2}),
        (InvalidSlot, {"slot": "19:30"}),
        (DateOutOfRange, {"date": SATURDAY}),
        (TableTaken, {"table_id": table_id("T2")}),
    ]

    for refusal, mending in mendings:
        with pytest.raises(refusal):
            await box.live.database.write(grant_it, **wish)
        if mending is None:
            await execute(box, "UPDATE venue SET status = 'active'")
        else:
            wish |= mending
    assert await box.live.database.write(grant_it, **wish)

    counts = "SELECT (SELECT count(*) FROM reservation), (SELECT count(*) FROM event)"
    assert read(box, counts) == [(2, 2)]


async def test_the_answer_is_unavailable_if_every_drawn_access_code_is_in_use(
    tmp_path, clock: StoppedClock, settings: Settings
):
    stuck = Tokens()
    stuck.new_access_code = lambda: "SVC-2222"
    async with opened_box(tmp_path, clock, settings, stuck) as box:
        await box.live.database.write(grant_it)
        with pytest.raises(Unavailable):
            await box.live.database.write(grant_it, table_id=table_id("T2"))


# Compare the database with a model: bookings and cancellations of one table in any order.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["book", "book", "book", "cancel"]),
        st.sampled_from(SLOTS),
        st.sampled_from([SATURDAY, SUNDAY]),
        st.integers(0, 9),
    ),
    max_size=14,
)
MINUTES = {"19:30": (1170, 1320), "22:00": (1320, 1500), "21:00": (1260, 1380),
           "16:00": (960, 1170), None: (0, 2880)}  # fmt: skip


class Model:
    """A simple model of a table: the occupied minutes of each day."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[date, set[int]]] = {}

    def is_free(self, day: date, wanted: set[int]) -> bool:
        return not any(on == day and taken & wanted for on, taken in self.held.values())


def follow(tx: Transaction, steps) -> None:
    """Run the steps with the real actions, and compare each result with the model."""
    model, granted = Model(), []
    for what, slot, day, which in steps:
        if what == "cancel" and granted:
            id_ = granted[which % len(granted)]
            cancel(tx, id_, actor="staff:x")
            model.held.pop(id_, None)
        elif what == "book":
            wanted = set(range(*MINUTES[slot]))
            expected = model.is_free(day, wanted)
            try:
                id_ = grant_it(tx, slot=slot, date=day)
            except TableTaken:
                assert not expected, (slot, day)
                continue
            assert expected, (slot, day)
            granted.append(id_)
            model.held[id_] = (day, wanted)
    for day in (SATURDAY, SUNDAY):
        holds = {(hold.starts, hold.ends) for hold in list_holds(tx, day.isoformat())}
        assert holds == {(min(m), max(m) + 1) for on, m in model.held.values() if on == day}


class Undo(Exception):
    """Rolls back the transaction, so that the next example starts with an empty venue."""


async def test_a_table_is_granted_exactly_when_the_model_says_it_is_free(box: Box):
    await box.live.database.write(add_slot, "21:00", "23:00")  # across 19:30 and 22:00
    await box.live.database.write(add_slot, "16:00", "19:30")  # ends where 19:30 begins
    loop = asyncio.get_running_loop()

    def write(steps) -> None:
        def action(tx: Transaction) -> None:
            follow(tx, steps)
            raise Undo

        future = asyncio.run_coroutine_threadsafe(box.live.database.write(action), loop)
        with pytest.raises(Undo):
            future.result(timeout=30)

    check = profile(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    await asyncio.to_thread(check(given(STEPS)(write)))


# Test the schema alone, without the check in the code.


OVERLAPS = [(1170, 1320), (1000, 1171), (1319, 1400), (1200, 1300), (0, 2880)]


@pytest.mark.parametrize(("starts", "ends"), OVERLAPS)
async def test_the_schema_refuses_an_overlapping_insert(box: Box, starts: int, ends: int):
    await box.live.database.write(add_reservation, starts=1170, ends=1320)

    with pytest.raises(TableTaken):
        await box.live.database.write(add_reservation, starts=starts, ends=ends)

    assert read(box, "SELECT count(*) FROM reservation") == [(1,)]


@pytest.mark.parametrize(("starts", "ends"), OVERLAPS)
@pytest.mark.parametrize(
    ("before", "change"),
    [
        ({"table_id": table_id("T2")}, {"table_id": table_id("T1")}),
        ({"date": "2026-11-22"}, {"date": TONIGHT}),
    ],
)
async def test_the_schema_refuses_to_move_a_hold_onto_another(
    box: Box, starts: int, ends: int, before: dict, change: dict
):
    await box.live.database.write(add_reservation, starts=1170, ends=1320)
    other = await box.live.database.write(add_reservation, starts=starts, ends=ends, **before)
    [name] = change
    sql = f"UPDATE hold SET {name} = :to WHERE reservation_seq = :seq"  # noqa: S608

    with pytest.raises(apsw.ConstraintError, match="table_taken"):
        await box.live.database.write(
            lambda tx: tx.execute(sql, {"to": change[name], "seq": other.seq})
        )

    assert read(box, f"SELECT {name} FROM hold WHERE reservation_seq = 2") == [  # noqa: S608
        (before[name],)
    ]


async def test_a_hold_may_be_moved_within_its_own_time(box: Box):
    await box.live.database.write(add_reservation, starts=1170, ends=1320)

    await box.live.database.write(lambda tx: tx.execute("UPDATE hold SET starts = 1200"))

    assert read(box, "SELECT starts, ends FROM hold") == [(1200, 1320)]
