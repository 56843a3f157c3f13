import asyncio
import html
import re

import pytest

from appliance.actions.edit_tables import edit_table
from appliance.model.venue import fingerprint
from appliance.model.venue_list import parse_tables
from appliance.store.venue import get_table, get_venue, list_closings, list_slots, list_tables
from tests.appliance.arrivals import add_reservation
from tests.builders import TONIGHT, a_body, table_id
from tests.web.portal.people import a_person

T1 = f"/portal/venue/tables/{table_id('T1')}"
NEXT_SATURDAY = "2026-11-28"


async def guest(running, **changes):
    return await running.live.database.write(add_reservation, **changes)


async def numbers(environment):
    return [table.number for table in await environment.database.read(list_tables)]


def field(page, name):
    """What a form on the page holds in that hidden field."""
    return html.unescape(re.search(rf'name="{name}" value="([^"]*)"', page)[1])


async def table_form(person, **changes):
    seen = field((await person.get(T1))[1], "seen")
    return {"seen": seen, "number": "T1", "name": "Terrasse 1", "capacity_min": "2",
            "capacity_max": "4", "minimum_spend": "500", "type": "standard", "bookable": "1",
            **changes}  # fmt: skip


async def slots_of(running):
    return {slot.start: slot for slot in await running.live.database.read(list_slots)}


async def create(running, **changes):
    return await running.call("POST", "/v1/reservations", json=a_body(**changes))


async def test_a_pasted_list_is_shown_first_and_then_added_behind_the_others(running):
    person = await a_person(running, "manager")
    pasted = "V1-V3;Salon 1;4;10;vip;3000\nBAR\t\t1\t2\tbar\n\nP1, Patio 1, 2, 6, terrace, 400"

    status, page, _ = await person.post("/portal/venue/preview", {"list": pasted})
    assert status == 200
    assert "5 new tables" in page
    assert len(await numbers(running.live)) == 6
    status, _, headers = await person.post("/portal/venue/tables", {"list": field(page, "list")})

    assert (status, headers["Location"]) == (303, "/portal/venue?note=tables-added")
    tables = (await running.live.database.read(list_tables))[6:]
    assert [(t.number, t.name, t.capacity_min, t.capacity_max, t.minimum_spend, t.type)
            for t in tables] == [
        ("V1", "Salon 1", 4, 10, 3000, "vip"),
        ("V2", "Salon 2", 4, 10, 3000, "vip"),
        ("V3", "Salon 3", 4, 10, 3000, "vip"),
        ("BAR", "BAR", 1, 2, 0, "bar"),
        ("P1", "Patio 1", 2, 6, 400, "terrace"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("X1;a;b;4", "capacity_min"),
        ("X1;a;0;4", "capacity_min"),
        ("X1;a;2;4000", "capacity_max"),
        ("X1;a;5;4", "order"),
        ("X1;a;2;4;bar;12.50", "minimum_spend"),
        ("X1;a;2;4;bar;-1", "minimum_spend"),
        ("X1;a;2;4;bar;5;6", "columns"),
        (";a", "number"),
        ("X" * 41, "number"),
        ("X1;" + "a" * 101, "name"),
        ("X1;a;2;4;" + "b" * 41, "type"),
        ("T1", "taken"),
        ("T9-T1", "range"),
        ("T1-S9", "range"),
        ("X1-X501", "too_many"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_the_others_are(line, what):
    found = parse_tables(f"A1\n{line}\nA2", frozenset({"T1"}))

    assert [(fault.line, fault.what) for fault in found.faults] == [(2, what)]
    assert [table.number for table in found.tables] == ["A1", "A2"]


def test_a_number_that_stands_twice_in_a_list_is_named_the_second_time():
    found = parse_tables("A1-A3\nA2")

    assert [(fault.line, fault.what) for fault in found.faults] == [(2, "twice")]


def test_a_header_line_of_a_spreadsheet_is_no_table_and_zeros_are_kept():
    found = parse_tables("Numéro;Nom;Min;Max\nA08-A10;Loge 08")

    assert [(table.number, table.name) for table in found.tables] == [
        ("A08", "Loge 08"), ("A09", "Loge 09"), ("A10", "Loge 10"),
    ]  # fmt: skip


async def test_a_list_with_a_fault_adds_nothing_and_shows_the_line_as_text(running):
    person = await a_person(running, "manager")

    for path in ("preview", "tables"):
        _, page, _ = await person.post(f"/portal/venue/{path}", {"list": "A1\n<b>x</b>;;9;4"})
        assert "Line 2" in page
        assert "the most is below the fewest" in page
        assert "<b>x</b>" not in page
    assert len(await numbers(running.live)) == 6


async def test_two_who_add_the_same_table_at_once_add_one(running):
    person = await a_person(running, "manager")

    answers = await asyncio.gather(
        *(person.post("/portal/venue/tables", {"list": "A1"}) for _ in range(4))
    )

    assert sorted(answer[0] for answer in answers) == [303, 400, 400, 400]
    assert (await numbers(running.live)).count("A1") == 1


async def test_tables_move_one_place_up_and_down_and_stop_at_the_ends(running):
    person = await a_person(running, "manager")

    for number, steps in (("T3", -1), ("T1", -1), ("T6", 1), ("T5", 1)):
        status, _, headers = await person.post(
            "/portal/venue/move", {"move": f"{table_id(number)}:{steps}"}
        )
        assert status == 303
        assert table_id(number) in headers["Location"]

    assert await numbers(running.live) == ["T1", "T3", "T2", "T4", "T6", "T5"]


async def test_an_order_that_was_dragged_is_kept_and_one_of_another_time_is_not(running):
    person = await a_person(running, "manager")
    page = (await person.get("/portal/venue"))[1]
    seen = re.search(r'data-seen="(\w+)"', page)[1]
    ids = [table_id(f"T{n}") for n in (6, 5, 4, 3, 2, 1)]

    first = await person.post("/portal/venue/order", {"seen": seen, "ids": " ".join(ids)})
    second = await person.post("/portal/venue/order", {"seen": seen, "ids": " ".join(ids[::-1])})
    short = await person.post("/portal/venue/order", {"seen": seen, "ids": ids[0]})

    assert [answer[0] for answer in (first, second, short)] == [303, 409, 409]
    assert await numbers(running.live) == ["T6", "T5", "T4", "T3", "T2", "T1"]


async def test_a_table_is_edited_and_what_another_saved_meanwhile_is_not_overwritten(running):
    person = await a_person(running, "manager")
    mine, theirs = await table_form(person, name="Ma terrasse"), await table_form(person, name="X")

    first, second = await person.post(T1, mine), await person.post(T1, theirs)

    assert (first[0], second[0]) == (303, 409)
    assert "Somebody changed this meanwhile" in second[1]
    table = await running.live.database.read(get_table, table_id("T1"))
    assert table.name == "Ma terrasse"


@pytest.mark.parametrize(
    "changes",
    [
        {"number": "T2"}, {"number": ""}, {"capacity_min": "0"}, {"capacity_max": "1"},
        {"capacity_max": "x"}, {"minimum_spend": "-1"}, {"type": ""}, {"name": "x" * 101},
    ],
)  # fmt: skip
async def test_a_table_that_cannot_be_is_refused(running, changes):
    person = await a_person(running, "manager")

    status, _, _ = await person.post(T1, await table_form(person, **changes))

    assert status == 400
    assert (await running.live.database.read(get_table, table_id("T1"))).capacity_max == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"capacity_max": "3"}, "more guests than the table seats"),
        ({"bookable": ""}, "the table cannot be booked any more"),
    ],
)
async def test_coming_reservations_are_shown_before_a_table_is_saved(running, changes, words):
    person = await a_person(running, "manager")
    coming = await guest(running, guests=4, date=NEXT_SATURDAY)
    await guest(running, guests=4, table="T2", date=NEXT_SATURDAY)
    await guest(running, guests=4, status="cancelled", date=NEXT_SATURDAY)
    form = await table_form(person, **changes)
    before = await running.live.database.read(get_table, table_id("T1"))

    status, page, _ = await person.post(T1, form)

    assert status == 409
    assert "1 coming reservation is concerned" in page
    assert words in page
    assert f"/portal/reservations/{coming.id}" in page
    assert await running.live.database.read(get_table, table_id("T1")) == before
    accepted = {**form, "accepted": field(page, "accepted")}
    assert (await person.post(T1, accepted))[0] == 303
    assert "1 coming reservation does not fit" in (await person.get("/portal/venue"))[1]


async def test_all_the_same_counts_only_for_the_list_that_was_shown(running):
    person = await a_person(running, "manager")
    await guest(running, guests=4, date=NEXT_SATURDAY)
    form = await table_form(person, capacity_max="3")
    _, page, _ = await person.post(T1, form)
    await guest(running, guests=4, date="2026-11-27")

    status, again, _ = await person.post(T1, {**form, "accepted": field(page, "accepted")})

    assert status == 409
    assert "2 coming reservations are concerned" in again
    assert (await running.live.database.read(get_table, table_id("T1"))).capacity_max == 4


async def test_a_table_without_reservations_goes_and_a_used_one_stays(running):
    person = await a_person(running, "manager")
    await guest(running, status="cancelled")
    free = f"/portal/venue/tables/{table_id('T2')}"

    used_status, _, _ = await person.post(
        f"{T1}/remove", {"seen": field((await person.get(T1))[1], "seen")}
    )
    status, _, _ = await person.post(
        f"{free}/remove", {"seen": field((await person.get(free))[1], "seen")}
    )

    assert (used_status, status) == (400, 303)
    assert await numbers(running.live) == ["T1", "T3", "T4", "T5", "T6"]


async def test_a_slot_is_added_and_can_be_booked(running):
    person = await a_person(running, "manager")
    status, _, _ = await person.post(
        "/portal/venue/slots",
        [("name", "After"), ("start", "01:00"), ("end", "04:00"), ("days", "6"), ("days", "5")],
    )

    assert status == 303
    assert (await slots_of(running))["01:00"].days_of_week == (5, 6)
    assert (await create(running, slot="01:00"))[0] == 201


@pytest.mark.parametrize(
    "form",
    [
        [("start", "19:30"), ("end", "21:00"), ("days", "6")],
        [("start", "25:00"), ("end", "21:00"), ("days", "6")],
        [("start", "18:00"), ("end", ""), ("days", "6")],
        [("start", "18:00"), ("end", "19:00")],
        [("start", "18:00"), ("end", "19:00"), ("days", "7")],
    ],
)
async def test_a_slot_that_cannot_be_is_refused(running, form):
    person = await a_person(running, "manager")

    assert (await person.post("/portal/venue/slots", form))[0] == 400
    assert len(await slots_of(running)) == 3


async def test_slots_that_share_time_are_allowed_and_warned_of(running):
    person = await a_person(running, "manager")
    assert "share some time" not in (await person.get("/portal/venue/slots"))[1]

    await person.post(
        "/portal/venue/slots",
        [("name", "Tard"), ("start", "21:00"), ("end", "23:00"), ("days", "6")],
    )

    page = (await person.get("/portal/venue/slots"))[1]
    assert "“Dîner” and “Tard” share some time" in page
    assert "“Tard” and “Soirée” share some time" in page


@pytest.mark.parametrize("how", ["weekday", "start", "removed"])
async def test_reservations_whose_slot_goes_are_shown_first_and_keep_their_time(running, how):
    person = await a_person(running, "manager")
    coming = await guest(running, slot="19:30", date=NEXT_SATURDAY)
    slot = (await slots_of(running))["19:30"]
    path = f"/portal/venue/slots/{slot.id}"
    days = [("days", str(day)) for day in range(6 if how == "weekday" else 7)]
    start = "20:00" if how == "start" else "19:30"
    form = [("seen", fingerprint(slot)), ("name", "Dîner"), ("start", start), ("end", "22:00"),
            *days]  # fmt: skip
    path += "/remove" if how == "removed" else ""

    status, page, _ = await person.post(path, form)

    assert status == 409
    assert "the slot is not offered on that day" in page
    assert f"/portal/reservations/{coming.id}" in page
    assert (await slots_of(running))["19:30"] == slot
    status, _, _ = await person.post(path, [*form, ("accepted", field(page, "accepted"))])
    assert status == 303
    kept = await running.live.database.read(
        lambda reader: reader.row("SELECT slot, starts, ends, status FROM reservation")
    )
    assert kept == ("19:30", coming.starts, coming.ends, "confirmed")


async def test_a_slot_edit_of_another_time_is_refused(running):
    person = await a_person(running, "manager")
    slot = (await slots_of(running))["19:30"]
    form = [("seen", "0" * 32), ("start", "19:30"), ("end", "23:00"), ("days", "6")]

    assert (await person.post(f"/portal/venue/slots/{slot.id}", form))[0] == 409
    assert (await person.post(f"/portal/venue/slots/{slot.id}/remove", form))[0] == 409


async def test_a_closing_day_takes_no_booking_and_no_table_is_free(running):
    person = await a_person(running, "manager")
    status, _, _ = await person.post(
        "/portal/venue/closings", {"first": NEXT_SATURDAY, "reason": "Travaux"}
    )
    assert status == 303

    refused = await create(running, date=NEXT_SATURDAY)
    _, availability, _ = await running.call("GET", f"/v1/availability?date={NEXT_SATURDAY}")
    before = await create(running, date="2026-11-27", idempotencyKey="before")

    assert (refused[0], refused[1]["code"]) == (409, "VENUE_INACTIVE")
    assert {(t["available"], t["blockedBy"]) for t in availability["tables"]} == {(False, None)}
    assert before[0] == 201
    assert "Travaux" in (await person.get("/portal/venue/closings"))[1]


async def test_who_is_expected_on_a_closing_day_is_shown_first_and_stays(running):
    person = await a_person(running, "manager")
    _, created, _ = await create(running, date=NEXT_SATURDAY)
    form = {"first": "2026-11-27", "last": "2026-11-30", "reason": ""}

    status, page, _ = await person.post("/portal/venue/closings", form)

    assert status == 409
    assert "the venue is closed that day" in page
    assert await running.live.database.read(list_closings) == []
    status, _, _ = await person.post(
        "/portal/venue/closings", {**form, "accepted": field(page, "accepted")}
    )
    assert status == 303
    listed = (await person.get("/portal/venue/closings"))[1]
    assert created["serviceReservationId"] in listed
    assert "1 reservation was made before: it stays" in listed
    replayed = await create(running, date=NEXT_SATURDAY)
    assert (replayed[0], replayed[1]) == (200, created)
    _, availability, _ = await running.call("GET", f"/v1/availability?date={NEXT_SATURDAY}")
    assert not any(table["available"] for table in availability["tables"])
    assert [table["blockedBy"] for table in availability["tables"]][:2] == ["partner", None]


async def test_days_that_are_opened_again_can_be_booked(running):
    person = await a_person(running, "manager")
    await person.post("/portal/venue/closings", {"first": TONIGHT})
    [closing] = await running.live.database.read(list_closings)

    status, _, _ = await person.post(f"/portal/venue/closings/{closing.id}/remove")

    assert status == 303
    assert (await create(running))[0] == 201


@pytest.mark.parametrize(
    "form",
    [
        {"first": ""}, {"first": "2026-02-30"}, {"first": "2026-11-20"},
        {"first": "2026-11-28", "last": "2026-11-27"},
        {"first": "2026-11-28", "last": "2099-01-01"},
    ],
)  # fmt: skip
async def test_a_period_that_cannot_be_is_refused(running, form):
    person = await a_person(running, "manager")

    assert (await person.post("/portal/venue/closings", form))[0] == 400
    assert await running.live.database.read(list_closings) == []


RULES = {"name": "Riad Atlas", "slug": "riad-atlas", "status": "active",
         "reservation_mode": "free", "auto_confirm": "1", "request_expiry_hours": "24",
         "currency": "MAD", "time_zone": "Africa/Casablanca",
         "evening_ends_at": "06:00"}  # fmt: skip


async def rules_form(person, **changes):
    seen = field((await person.get("/portal/venue/rules"))[1], "seen")
    return {**RULES, "seen": seen, **changes}


async def test_the_rules_are_saved_and_partners_read_them(running):
    person = await a_person(running, "manager")
    form = await rules_form(
        person, name="Riad Toubkal", status="inactive", reservation_mode="prepaid",
        auto_confirm="", request_expiry_hours="48", currency="EUR",
    )  # fmt: skip

    assert (await person.post("/portal/venue/rules", form))[0] == 303

    _, found, _ = await running.call("GET", "/v1/venue")
    assert (found["venue"]["name"], found["venue"]["status"]) == ("Riad Toubkal", "inactive")
    assert (found["reservationMode"], found["autoConfirm"]) == ("prepaid", False)
    assert (found["requestExpiryHours"], found["currency"]) == (48, "EUR")
    assert (await create(running))[1]["code"] == "VENUE_INACTIVE"
    assert (await person.post("/portal/venue/rules", form))[0] == 409


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""}, {"slug": "Riad Atlas"}, {"status": "asleep"}, {"reservation_mode": "x"},
        {"request_expiry_hours": "0"}, {"currency": "mad"}, {"evening_ends_at": "13:00"},
        {"time_zone": "Mars/Base"}, {"time_zone": "../../etc/passwd"}, {"time_zone": ""},
        {"time_zone": "Africa"}, {"evening_ends_at": "6"},
        {"map_url": "javascript:alert(1)"}, {"map_url": "http://maps.example/riad"},
        {"address": "a" * 201},
    ],
)  # fmt: skip
async def test_rules_that_cannot_be_are_refused(running, changes):
    person = await a_person(running, "manager")
    before = await running.live.database.read(get_venue)

    status, _, _ = await person.post("/portal/venue/rules", await rules_form(person, **changes))

    assert status == 400
    assert await running.live.database.read(get_venue) == before


async def test_the_address_and_the_map_are_saved_and_an_empty_field_forgets_them(running):
    person = await a_person(running, "manager")
    place = {"address": "12, derb Dabachi, Marrakech", "map_url": "https://maps.example/riad"}

    status, _, _ = await person.post("/portal/venue/rules", await rules_form(person, **place))

    assert status == 303
    venue = await running.live.database.read(get_venue)
    assert (venue.address, venue.map_url) == (place["address"], place["map_url"])
    _, page, _ = await person.get("/portal/venue/rules")
    assert place["address"] in page
    assert place["map_url"] in page
    await person.post("/portal/venue/rules", await rules_form(person))
    venue = await running.live.database.read(get_venue)
    assert (venue.address, venue.map_url) == (None, None)


async def test_the_evening_does_not_end_across_a_slot_that_somebody_holds(running):
    person = await a_person(running, "manager")
    await person.post("/portal/venue/slots", [("start", "02:00"), ("end", "04:00"), ("days", "6")])
    assert (await create(running, slot="02:00", date=NEXT_SATURDAY))[0] == 201

    status, page, _ = await person.post(
        "/portal/venue/rules", await rules_form(person, evening_ends_at="01:00")
    )

    assert status == 409
    assert "move across midnight" in page
    taken = await create(running, slot="02:00", date=NEXT_SATURDAY, idempotencyKey="b")
    assert taken[1]["code"] == "TABLE_TAKEN"


async def test_policies_are_saved_with_pairs_of_the_houses_own(running):
    person = await a_person(running, "manager")
    form = await rules_form(
        person, cancellation="24 h avant.", lateArrivalMinutes="20", minimumAge="", dressCode="",
        others="parking: voiturier\nterrace: true\nopen: 1e999\nhours: [18, 23]",
    )  # fmt: skip

    assert (await person.post("/portal/venue/policies", form))[0] == 303

    _, found, _ = await running.call("GET", "/v1/venue")
    assert found["policies"] == {
        "cancellation": "24 h avant.", "lateArrivalMinutes": 20, "parking": "voiturier",
        "terrace": True, "open": "1e999", "hours": [18, 23],
    }  # fmt: skip
    page = (await person.get("/portal/venue/rules"))[1]
    assert "terrace: true" in page
    assert "hours: [18, 23]" in page
    empty = await rules_form(person)
    await person.post("/portal/venue/policies", empty)
    assert (await running.call("GET", "/v1/venue"))[1]["policies"] is None


@pytest.mark.parametrize("others", ["no colon", "a: 1\na: 2", ": x", "minimumAge: 3"])
async def test_a_pair_that_is_none_is_refused(running, others):
    person = await a_person(running, "manager")

    form = await rules_form(person, others=others)

    assert (await person.post("/portal/venue/policies", form))[0] == 400


async def test_the_test_environment_takes_the_tables_and_slots_of_live(running):
    person = await a_person(running, "manager")
    await person.post("/portal/venue/tables", {"list": "V1;Salon;4;8;vip"})
    await person.post("/test/portal/venue/tables", {"list": "X1"})
    await person.post("/portal/venue/slots", [("start", "15:00"), ("end", "17:00"), ("days", "2")])

    status, _, _ = await person.post("/test/portal/venue/copy-live")

    assert status == 303
    copied = {t.number: t.bookable for t in await running.test.database.read(list_tables)}
    assert copied["V1"] is True
    assert copied["X1"] is False
    assert "15:00" in {slot.start for slot in await running.test.database.read(list_slots)}
    assert (await person.post("/portal/venue/copy-live"))[0] == 404


async def test_markup_in_a_name_is_shown_as_text(running):
    person = await a_person(running, "manager")
    evil = "<script>alert(1)</script>"
    await person.post(T1, await table_form(person, name=evil, type=evil[:40]))
    await person.post("/portal/venue/closings", {"first": NEXT_SATURDAY, "reason": evil})

    for path in ("/portal/venue", T1, "/portal/venue/closings"):
        page = (await person.get(path))[1]
        assert evil not in page
        assert "&lt;script&gt;" in page


async def test_ten_managers_edit_one_table_at_once_and_one_wins(running):
    person = await a_person(running, "manager")
    table = await running.live.database.read(get_table, table_id("T1"))
    forms = [await table_form(person, name=f"Nom {n}") for n in range(10)]

    answers = await asyncio.gather(*(person.post(T1, form) for form in forms))

    assert sorted(answer[0] for answer in answers) == [303] + [409] * 9
    after = await running.live.database.read(get_table, table_id("T1"))
    assert after.name != table.name


async def test_a_change_of_a_day_gone_by_concerns_nobody(running):
    await guest(running, guests=4, date="2026-11-20")
    table = await running.live.database.read(get_table, table_id("T1"))
    entry = parse_tables("Z1;Terrasse;1;2").tables[0]

    clashes = await running.live.database.write(edit_table, table.id, fingerprint(table), entry)

    assert clashes == ()
