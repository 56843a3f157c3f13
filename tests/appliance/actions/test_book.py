import pytest

from appliance.actions.book import ANY_TABLE, book
from appliance.errors import InvalidSlot, TableTaken, VenueClosed
from appliance.house_errors import FormUsed
from appliance.store.reservations import update_reservation
from tests.builders import TONIGHT, a_booking, table_id


@pytest.fixture
def clock(clock):
    clock.set("2026-11-21T12:00:00Z")
    return clock


def a_wish(number: int = 1, **changes):
    return a_booking(idempotency_key=f"form-{number}", **changes)


async def events(box) -> list[str]:
    return await box.live.database.read(
        lambda reader: [row[0] for row in reader.rows("SELECT type FROM event ORDER BY seq")]
    )


@pytest.mark.parametrize("table", [table_id("T1"), ANY_TABLE])
async def test_the_same_form_is_one_reservation(box, table):
    first = await box.live.database.write(book, a_wish(table_id=table))
    again = await box.live.database.write(book, a_wish(table_id=table))

    assert again == first
    assert await events(box) == ["reservation.created"]


@pytest.mark.parametrize(
    "changes", [{"slot": "22:00"}, {"guests": 4}, {"customer_name": "Karim Alaoui"}]
)
async def test_a_form_that_says_something_else_the_second_time_books_nothing_and_says_so(
    box, changes
):
    await box.live.database.write(book, a_wish())

    with pytest.raises(FormUsed):
        await box.live.database.write(book, a_wish(**changes))

    assert await events(box) == ["reservation.created"]


async def test_a_form_whose_reservation_was_cancelled_does_not_bring_that_back(box):
    made = await box.live.database.write(book, a_wish())
    await box.live.database.write(update_reservation, made.id, status="cancelled")

    with pytest.raises(FormUsed):
        await box.live.database.write(book, a_wish())


async def test_the_house_fills_its_tables_and_then_refuses(box):
    wishes = [a_wish(number, table_id=ANY_TABLE) for number in range(6)]
    made = [await box.live.database.write(book, wish) for wish in wishes[:5]]

    with pytest.raises(TableTaken):
        await box.live.database.write(book, wishes[5])

    assert [one.table_id for one in made] == [table_id(f"T{n}") for n in range(1, 6)]


async def test_of_equal_tables_the_one_with_the_least_to_spend_is_taken(box):
    await box.live.database.write(
        lambda tx: tx.execute("UPDATE venue_table SET minimum_spend = 100 WHERE number = 'T3'")
    )

    made = await box.live.database.write(book, a_wish(table_id=ANY_TABLE))

    assert made.table_id == table_id("T3")


@pytest.mark.parametrize(
    ("now", "slot", "is_booked"),
    [
        ("2026-11-21T19:29:59Z", "19:30", True),
        ("2026-11-21T19:30:00Z", "19:30", False),
        ("2026-11-21T21:59:59Z", "22:00", True),
        ("2026-11-21T21:59:59Z", None, True),
        ("2026-11-21T22:00:00Z", None, False),
        ("2026-11-22T01:00:00Z", "22:00", False),
    ],
)
async def test_a_slot_is_booked_until_it_begins_and_the_evening_until_its_last(
    box, clock, now, slot, is_booked
):
    clock.set(now)

    try:
        await box.live.database.write(book, a_wish(slot=slot))
    except InvalidSlot:
        booked = False
    else:
        booked = True

    assert booked is is_booked


async def test_a_closing_day_is_refused_for_a_table_and_for_any(box):
    await box.live.database.write(
        lambda tx: tx.insert(
            "closing_day",
            {"id": tx.new_id(), "first_day": TONIGHT, "last_day": TONIGHT, "reason": ""},
        )
    )

    for number, table in enumerate((table_id("T1"), ANY_TABLE)):
        with pytest.raises((VenueClosed, TableTaken)):
            await box.live.database.write(book, a_wish(number, table_id=table))
    assert await events(box) == []
