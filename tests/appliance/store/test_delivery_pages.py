"""The log of deliveries stays quick however long it is: a page is found, never counted to."""

import pytest

from appliance.model.delivery import STATES
from appliance.store import delivery_pages
from appliance.store.connection import Reader
from appliance.store.delivery_pages import DeliveryFilter, count_deliveries, page_deliveries

TYPES = ("reservation.created", "reservation.confirmed", "reservation.checked_in")
EVENTS, ENDPOINTS = 24, 3
MINUTE = 60_000


@pytest.fixture
async def log(box, clock):
    """24 events of a minute each to three endpoints, in every state and of three types."""
    await box.live.database.write(write_log, clock.now())
    return box.live.database


def write_log(tx, now):
    for endpoint in range(ENDPOINTS):
        tx.insert(
            "endpoint",
            {"id": f"e{endpoint}", "url": f"https://{endpoint}.example/", "events": "[]",
             "active": 1, "created_at": now, "secret": b"wrapped"},
        )  # fmt: skip
    for n in range(EVENTS):
        event = {"seq": n + 1, "type": TYPES[n % 3], "occurred_at": now + n * MINUTE,
                 "reservation_id": f"r{n % 5}"}  # fmt: skip
        tx.insert("event", event)
        for endpoint in range(ENDPOINTS):
            state = STATES[(n + endpoint) % 4]
            tx.insert(
                "delivery",
                {"id": f"{n}-{endpoint}", "endpoint_id": f"e{endpoint}", "event_seq": n + 1,
                 "state": state, "due_at": now,
                 "finished_at": None if state == "pending" else now},
            )  # fmt: skip


def expected(now, chosen):
    """The ids that fit, newest event first, found the slow way."""
    return [
        f"{n}-{endpoint}"
        for n in reversed(range(EVENTS))
        for endpoint in reversed(range(ENDPOINTS))
        if chosen.endpoint_id in {None, f"e{endpoint}"}
        and chosen.state in {None, STATES[(n + endpoint) % 4]}
        and chosen.event_type in {None, TYPES[n % 3]}
        and chosen.reservation_id in {None, f"r{n % 5}"}
        and (chosen.since is None or now + n * MINUTE >= chosen.since)
        and (chosen.until is None or now + n * MINUTE < chosen.until)
    ]


def filters(now):
    for endpoint_id in (None, "e1", "e9"):
        for state in (None, *STATES):
            for event_type in (None, TYPES[0], "webhook.test"):
                for since, until in ((None, None), (now + 5 * MINUTE, now + 15 * MINUTE)):
                    for reservation_id in (None, "r1", ""):
                        yield DeliveryFilter(
                            endpoint_id, state, event_type, since, until, reservation_id
                        )


async def test_pages_one_after_the_other_are_the_whole_log_in_order_for_every_filter(log, clock):
    for chosen in filters(clock.now()):
        found, before = [], None
        while True:
            page = await log.read(page_deliveries, chosen, before, size=7)
            found += [line.id for line in page.deliveries]
            before = page.older
            if before is None:
                break
            assert len(page.deliveries) == 7

        assert found == expected(clock.now(), chosen), chosen


async def test_the_count_is_that_of_the_pages(log, clock):
    now = clock.now()
    for state in STATES:
        chosen = DeliveryFilter("e1", state, None, now + 5 * MINUTE, now + 15 * MINUTE)

        counted = await log.read(count_deliveries, "e1", (state,), chosen.since, chosen.until)

        assert counted == len(expected(now, chosen))


async def test_what_arrives_meanwhile_moves_no_page(log):
    first = await log.read(page_deliveries, DeliveryFilter(), None, size=5)

    def arrive(tx):
        tx.insert("event", {"seq": 999, "type": TYPES[0], "occurred_at": tx.now})
        tx.insert("delivery", {"id": "new", "endpoint_id": "e0", "event_seq": 999, "due_at": 0})

    await log.write(arrive)
    second = await log.read(page_deliveries, DeliveryFilter(), first.older, size=5)

    both = [line.id for line in (*first.deliveries, *second.deliveries)]
    assert "new" not in both
    assert len(set(both)) == 10


class Explaining(Reader):
    """Notes how each statement of a query is run."""

    def rows(self, sql, parameters=None):
        explained = self.connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters or {})
        self.plans += [row[3] for row in explained]
        return self.connection.execute(sql, parameters or {})


Explaining.plans = []


async def plans_of(database, chosen):
    def explain(reader):
        explaining = Explaining(reader.connection, database.clock, database.zones)
        explaining.plans = []
        page_deliveries(explaining, chosen, (20, 20))
        if chosen.endpoint_id:
            count_deliveries(explaining, chosen.endpoint_id, STATES, 0, 2**62)
        return explaining.plans

    return await database.read(explain)


async def test_every_filter_is_answered_by_an_index_and_only_what_waits_is_sorted(log, clock):
    for chosen in filters(clock.now()):
        plans = await plans_of(log, chosen)

        scans = [plan for plan in plans if plan.startswith("SCAN")]
        assert set(scans) <= {"SCAN endpoint USING COVERING INDEX sqlite_autoindex_endpoint_1"}
        if chosen.state not in {None, "pending"}:
            assert not [plan for plan in plans if "TEMP B-TREE" in plan], chosen


async def test_a_run_is_found_by_its_endpoint_its_state_and_where_the_page_begins(log):
    plans = await plans_of(log, DeliveryFilter("e1", "dead"))

    run = (
        "SEARCH d USING COVERING INDEX delivery_log "
        "(endpoint_id=? AND state=? AND event_seq>? AND event_seq<?)"
    )
    assert run in plans


@pytest.mark.proves("S21", "V1")
def test_no_state_is_ever_written_into_a_statement_that_is_not_one_of_ours():
    with pytest.raises(ValueError, match="not in tuple"):
        delivery_pages._run("dead' OR 1 --")
