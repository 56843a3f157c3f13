"""The SQL filter of a search never excludes a matching reservation."""

from datetime import date, timedelta

from appliance.database.connection import Transaction
from appliance.privacy import erase_past_guests
from appliance.reservations.create import enter_by_staff
from appliance.reservations.rows import get_reservation
from appliance.reservations.search import Wanted, fits, list_found, page_found
from tests.builders import TONIGHT, a_booking, table_id

NAMES = ("Salma Bennani", "Émile Zola", "Ines T2", "Omar", "Terrasse Noire", "Salma Haddad")
QUERIES = ("", "salma", "t2", "terrasse", "terrasse 2", "emile", "salma terrasse", "noire", "zz",
           "salma t1", "600000003", "03", "SVC-", "2")  # fmt: skip


def enter(tx: Transaction) -> None:
    for number in range(18):
        name = NAMES[number % len(NAMES)]
        booking = a_booking(
            date=date.fromisoformat(TONIGHT) + timedelta(days=number // 3),
            table_id=table_id(f"T{number % 3 + 1}"),
            customer_name=name,
            customer_phone=f"+2126000000{number:02}",
        )
        entered = enter_by_staff(tx, booking, actor="staff:1")
        if number % 2:
            erase_past_guests(tx, [entered.id])
        if number % 3 == 0:  # like a reservation of a past evening
            tx.execute(
                "UPDATE reservation SET access_code = NULL WHERE id = :id", {"id": entered.id}
            )


async def test_the_indexed_search_finds_the_same_guests_as_a_full_scan(box):
    await box.live.database.write(enter)
    everybody = await box.live.database.read(
        lambda reader: [get_reservation(reader, id_) for id_ in list_found(reader, Wanted())]
    )
    assert len(everybody) == 18

    for query in QUERIES:
        wanted = [found.id for found in everybody if fits(found, query)]
        shown, total = await box.live.database.read(page_found, Wanted(text=query), 1, 50)

        assert [found.id for found in shown] == wanted, query
        assert total == len(wanted), query
        assert await box.live.database.read(list_found, Wanted(text=query)) == wanted, query
