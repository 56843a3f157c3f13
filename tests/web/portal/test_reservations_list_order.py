"""The list of reservations goes as the evenings go, and never past its last page."""

import pytest

from tests.spreadsheets import rows_of
from tests.web.portal.people import a_person
from tests.web.portal.seating import seat

LIST = "/portal/reservations"


@pytest.fixture
async def an_evening(running):
    """The whole evening, and three hours of it; the last is past midnight, and was booked first."""
    for number, slot, starts in (
        ("T1", "01:00", 25 * 60),
        ("T2", "22:00", 22 * 60),
        ("T3", "19:30", 19 * 60 + 30),
        ("T4", None, 0),
    ):
        await seat(running, table=number, slot=slot, starts=starts, ends=starts + 60,
                   customer_name=slot or "all", access_code=None)  # fmt: skip


@pytest.mark.parametrize("order", ["evening", "latest-evening"])
async def test_an_hour_past_midnight_is_the_last_of_its_evening(running, an_evening, order):
    manager = await a_person(running, "manager")

    _, text, _ = await manager.get(f"{LIST}/export.csv?order={order}")
    _, page, _ = await manager.get(f"{LIST}?order={order}")

    assert [row[3] for row in rows_of(text)[1:]] == ["all", "19:30", "22:00", "01:00"]
    table = page.partition("<tbody>")[2]
    assert table.index("19:30") < table.index("22:00") < table.index("01:00")


@pytest.mark.parametrize("query", ["page=9", "page=9&q=salma"])
async def test_a_page_past_the_end_is_the_last_one(running, query):
    host = await a_person(running, "host")
    for n in range(51):
        await seat(running, date=f"2027-01-{n % 30 + 1:02d}", table=f"T{n // 30 + 1}",
                   access_code=None)  # fmt: skip

    _, page, _ = await host.get(f"{LIST}?{query}")

    assert "51 reservations" in page
    assert "Page 2 of 2" in page
    assert page.partition("<tbody>")[2].count("<tr>") == 1
    assert "page=1" in page
