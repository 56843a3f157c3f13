"""The list of reservations: filters, pages, CSV export."""

import re

import pytest

from appliance.reservations.payments import record_payment
from tests.app.portal.people import a_person
from tests.app.portal.seating import rows, seat, value_of
from tests.spreadsheets import rows_of

LIST = "/portal/reservations"
CSV = "/portal/reservations/export.csv"


async def found(person, query):
    """Return the ids in the table of the page, in order."""
    status, page, _ = await person.get(f"{LIST}?{query}")
    assert status == 200
    table = page.partition("<tbody>")[2]
    return [part.partition('"')[0] for part in table.split(f'href="{LIST}/')[1:]]


async def test_the_list_starts_with_tonight_and_is_sorted_by_evening(running, host):
    later = await seat(running, date="2026-12-24", access_code=None)
    tonight = await seat(running, slot="22:00", access_code=None)
    early = await seat(running, table="T2", access_code=None)
    past = await seat(running, date="2026-11-20", access_code=None, status="completed")

    assert await found(host, "") == [early.id, tonight.id, later.id]
    assert past.id in await found(host, "from=")
    assert await found(host, "from=2026-11-20&to=2026-11-20") == [past.id]
    assert await found(host, "order=latest-evening") == [later.id, early.id, tonight.id, past.id]


@pytest.mark.parametrize(
    "words",
    ["salma", "IDRISSI sal", "Éloïse", "eloise", "SVC-2345", "2345", "123 457", "+212 600 123457",
     "0600 123", "terrasse 3"],
)  # fmt: skip
async def test_a_search_finds_names_access_codes_tables_and_phone_digits(running, host, words):
    salma = await seat(
        running, table="T3", customer_name="Salma Éloïse Idrissi",
        customer_phone="+212 600 123 457" if words != "0600 123" else "0600-123-457",
    )  # fmt: skip
    await seat(running, table="T4", access_code=None, customer_name="Omar Tazi",
               customer_phone="+212 699 999 999")  # fmt: skip

    assert await found(host, f"q={words.replace('+', '%2B').replace(' ', '+')}") == [salma.id]


async def test_filtering_by_status_and_source_hides_the_others(running, host):
    gone = await seat(running, status="cancelled", source="partner", access_code=None)
    here = await seat(running, source="platform", access_code=None)
    assert await found(host, "status=cancelled") == [gone.id]
    assert await found(host, "source=platform&status=") == [here.id]
    assert await found(host, "status=cancelled&source=platform") == []


async def test_a_page_has_fifty_rows_and_a_page_past_the_end_shows_the_last_one(running, host):
    for n in range(60):
        await seat(running, date=f"2027-01-{n % 30 + 1:02d}", table=f"T{n // 30 + 1}",
                   access_code=None)  # fmt: skip

    first, second = await found(host, ""), await found(host, "page=2&from=&to=&q=")
    assert (len(first), len(second), len({*first, *second})) == (50, 10, 60)
    assert len(await found(host, "q=salma&page=2")) == 10
    _, page, _ = await host.get(f"{LIST}?q=salma")
    assert "page=2" in page
    for query in ("page=9&from=", "page=9&q=salma"):
        assert len(await found(host, query)) == 10
        assert "page=1" in (await host.get(f"{LIST}?{query}"))[1]


async def test_the_export_contains_the_filtered_reservations_with_their_payments(running, manager):
    salma = await seat(running, status="pending", notes="one\r\ntwo")
    await seat(running, table="T2", access_code=None, customer_name="Omar Tazi")
    await running.live.database.write(
        record_payment, salma.id, amount=300, method="cash", complete=False, actor="staff:x"
    )

    status, text, headers = await manager.get(f"{CSV}?q=salma")

    assert status == 200
    assert headers["Content-Type"] == "text/csv; charset=utf-8"
    assert headers["Content-Disposition"] == 'attachment; filename="reservations-riad-atlas.csv"'
    assert text.startswith("\ufeff")
    assert text.endswith("\r\n")
    _, row = rows_of(text)
    assert row[3] == "Salma Idrissi"
    assert row[4] == "tel:+212600123457"
    assert row[12] == "one two"
    assert row[14:17] == ["300", "500", "MAD"]
    assert row[20] == salma.id
    noted = await rows(running, "SELECT actor, what, detail FROM audit_log ORDER BY seq")
    assert noted[-1] == (f"staff:{manager.id}", "exported", '{"name":"reservations.csv"}')


async def test_hosts_can_view_the_list_but_only_managers_can_export_it(running, host):
    await seat(running)
    assert (await host.get(CSV))[0] == 403
    assert "export.csv" not in (await host.get(LIST))[1]
    assert "export.csv" in (await (await a_person(running, "manager")).get(LIST))[1]


@pytest.mark.parametrize("order", ["", "slot", "evening", "latest-evening"])
async def test_a_slot_past_midnight_is_sorted_last_in_its_evening(running, order, manager):
    for number, slot, starts in (
        ("T1", "01:00", 25 * 60),
        ("T2", "22:00", 22 * 60),
        ("T3", "19:30", 19 * 60 + 30),
        ("T4", None, 0),
    ):
        await seat(running, table=number, slot=slot, starts=starts, ends=starts + 60,
                   customer_name=slot or "all", access_code=None)  # fmt: skip

    _, text, _ = await manager.get(f"{LIST}/export.csv?order={order}")
    _, page, _ = await manager.get(f"{LIST}?order={order}")
    assert [row[3] for row in rows_of(text)[1:]] == ["all", "19:30", "22:00", "01:00"]
    table = page.partition("<tbody>")[2]
    assert table.index("19:30") < table.index("22:00") < table.index("01:00")


@pytest.mark.parametrize(
    ("query", "field"),
    [("from=2026-12-24&to=2026-12-01", "to"), ("from=24.12.2026", "from"), ("to=2026-02-30", "to")],
)
async def test_an_invalid_period_is_reported_at_its_field_and_keeps_the_filters(
    running, host, query, field
):
    await seat(running)
    status, page, _ = await host.get(f"/portal/reservations?q=salma&status=confirmed&{query}")
    assert (status, f'id="refused-{field}"' in page) == (400, True)
    assert value_of(page, "q") == "salma"
    assert '<option value="confirmed" selected>' in page
    for name, _, text in (pair.partition("=") for pair in query.split("&")):
        assert value_of(page, name) == text
    assert "ledger" not in page


async def test_an_empty_list_without_filters_does_not_suggest_changing_the_search(new_box):
    owner = await a_person(new_box)
    for path in ("reservations", "door/log"):
        _, page, _ = await owner.get(f"/portal/{path}")
        _, searched, _ = await owner.get(f"/portal/{path}?q=x")
        said = [re.search(r'class="empty">([^<]*)<', each)[1] for each in (page, searched)]
        assert said[0] != said[1], path
    _, page, _ = await owner.get("/portal/reservations/new")
    assert re.search(r'id="none-free".*?<a href="/portal/venue"', page, re.DOTALL)
