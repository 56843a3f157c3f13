"""The venue's pages: tables, slots, closing days, rules and policies."""

import re

import pytest

from appliance.venue.model import fingerprint, get_table, get_venue, list_closings
from tests.app.portal.people import a_person
from tests.app.portal.seating import value_of
from tests.app.portal.venue_forms import (
    NEXT_SATURDAY,
    T1,
    create,
    guest,
    numbers,
    slots_of,
    table_form,
)
from tests.builders import TONIGHT, table_id


async def test_a_table_moves_one_place_up_or_down_but_not_past_the_ends(running, manager):
    for number, steps in (("T3", -1), ("T1", -1), ("T6", 1), ("T5", 1)):
        status, _, headers = await manager.post(
            "/portal/venue/move", {"move": f"{table_id(number)}:{steps}"}
        )
        assert status == 303
        assert table_id(number) in headers["Location"]

    assert await numbers(running.live) == ["T1", "T3", "T2", "T4", "T6", "T5"]


async def test_a_dragged_order_of_tables_is_saved_unless_it_is_outdated(running, manager):
    page = (await manager.get("/portal/venue"))[1]
    seen = re.search(r'data-seen="(\w+)"', page)[1]
    ids = [table_id(f"T{n}") for n in (6, 5, 4, 3, 2, 1)]

    first = await manager.post("/portal/venue/order", {"seen": seen, "ids": " ".join(ids)})
    second = await manager.post("/portal/venue/order", {"seen": seen, "ids": " ".join(ids[::-1])})
    short = await manager.post("/portal/venue/order", {"seen": seen, "ids": ids[0]})

    assert [answer[0] for answer in (first, second, short)] == [303, 409, 409]
    assert await numbers(running.live) == ["T6", "T5", "T4", "T3", "T2", "T1"]


@pytest.mark.parametrize(
    "changes",
    [{"number": "T2"}, {"number": ""}, {"capacity_min": "0"}, {"capacity_max": "1"},
     {"capacity_max": "x"}, {"minimum_spend": "-1"}, {"type": ""}, {"name": "x" * 101}],
)  # fmt: skip
async def test_an_invalid_table_is_refused(running, changes, manager):
    status, _, _ = await manager.post(T1, await table_form(manager, **changes))
    assert status == 400
    assert (await running.live.database.read(get_table, table_id("T1"))).capacity_max == 4


@pytest.mark.parametrize("changes", [{"capacity_max": "3"}, {"bookable": ""}])
async def test_affected_reservations_are_shown_before_a_table_is_saved(running, changes, manager):
    coming = await guest(running, guests=4, date=NEXT_SATURDAY)
    await guest(running, guests=4, table="T2", date=NEXT_SATURDAY)
    await guest(running, guests=4, status="cancelled", date=NEXT_SATURDAY)
    form = await table_form(manager, **changes)
    before = await running.live.database.read(get_table, table_id("T1"))

    status, page, _ = await manager.post(T1, form)

    assert status == 409
    assert f"/portal/reservations/{coming.id}" in page
    assert await running.live.database.read(get_table, table_id("T1")) == before
    accepted = {**form, "accepted": value_of(page, "accepted")}
    assert (await manager.post(T1, accepted))[0] == 303


async def test_a_confirmation_applies_only_to_the_list_of_clashes_that_was_shown(running, manager):
    await guest(running, guests=4, date=NEXT_SATURDAY)
    form = await table_form(manager, capacity_max="3")
    _, page, _ = await manager.post(T1, form)
    await guest(running, guests=4, date="2026-11-27")

    status, _, _ = await manager.post(T1, {**form, "accepted": value_of(page, "accepted")})

    assert status == 409
    assert (await running.live.database.read(get_table, table_id("T1"))).capacity_max == 4


async def test_only_a_table_without_reservations_can_be_removed(running, manager):
    await guest(running, status="cancelled")
    free = f"/portal/venue/tables/{table_id('T2')}"

    used_status, _, _ = await manager.post(
        f"{T1}/remove", {"seen": value_of((await manager.get(T1))[1], "seen")}
    )
    status, _, _ = await manager.post(
        f"{free}/remove", {"seen": value_of((await manager.get(free))[1], "seen")}
    )

    assert (used_status, status) == (400, 303)
    assert await numbers(running.live) == ["T1", "T3", "T4", "T5", "T6"]


async def test_an_added_slot_can_be_booked(running, manager):
    status, _, _ = await manager.post(
        "/portal/venue/slots",
        [("name", "After"), ("start", "01:00"), ("end", "04:00"), ("days", "6"), ("days", "5")],
    )

    assert status == 303
    assert (await slots_of(running))["01:00"].days_of_week == (5, 6)
    assert (await create(running, slot="01:00"))[0] == 201


async def test_overlapping_slots_are_listed_with_their_hours(manager):
    form = [("name", "After"), ("start", "21:00"), ("end", "23:00"), ("days", "6")]
    await manager.post("/portal/venue/slots", form)

    _, page, _ = await manager.get("/portal/venue/slots")

    clashes = re.search('class="clashes">(.*?)</ul>', page, re.DOTALL)[1]
    assert clashes.count("21:00–23:00") == clashes.count("<li>") > 0


@pytest.mark.parametrize(
    ("page", "form"),
    [("slots", {"start": "19:30", "end": "21:00", "days": "6"}),
     ("slots", {"start": "23:00", "end": "13:00", "days": "6"}),  # and brunch begins at 12:00
     ("slots", {"start": "25:00", "end": "21:00", "days": "6"}),
     ("slots", {"start": "18:00", "end": "", "days": "6"}),
     ("closings", {"first": ""}), ("closings", {"first": "2026-02-30"}),
     ("closings", {"first": "2026-11-20"}),
     ("closings", {"first": "2026-11-28", "last": "2099-01-01"}),
     ("rules", {"minimumAge": "121"})],
)  # fmt: skip
async def test_an_invalid_slot_closing_or_policy_is_refused(running, page, form, manager):
    form = await rules_form(manager, **form) if page == "rules" else form
    assert (await manager.post(f"/portal/venue/{page}", form))[0] == 400
    assert len(await slots_of(running)) == 3
    assert await running.live.database.read(list_closings) == []


@pytest.mark.parametrize("how", ["weekday", "start", "removed"])
async def test_affected_reservations_are_shown_before_a_slot_is_saved(running, how, manager):
    coming = await guest(running, slot="19:30", date=NEXT_SATURDAY)
    slot = (await slots_of(running))["19:30"]
    path = f"/portal/venue/slots/{slot.id}"
    days = [("days", str(day)) for day in range(6 if how == "weekday" else 7)]
    start = "20:00" if how == "start" else "19:30"
    form = [("seen", fingerprint(slot)), ("name", "Dîner"), ("start", start), ("end", "22:00"),
            *days]  # fmt: skip
    path += "/remove" if how == "removed" else ""

    status, page, _ = await manager.post(path, form)

    assert status == 409
    assert f"/portal/reservations/{coming.id}" in page
    assert (await slots_of(running))["19:30"] == slot
    status, _, _ = await manager.post(path, [*form, ("accepted", value_of(page, "accepted"))])
    assert status == 303
    kept = await running.live.database.read(
        lambda reader: reader.row("SELECT slot, starts, ends, status FROM reservation")
    )
    assert kept == ("19:30", coming.starts, coming.ends, "confirmed")


async def test_on_a_closing_day_no_table_is_free_and_no_booking_is_accepted(running, manager):
    status, _, _ = await manager.post(
        "/portal/venue/closings", {"first": NEXT_SATURDAY, "reason": "Travaux"}
    )
    assert status == 303

    refused = await create(running, date=NEXT_SATURDAY)
    _, availability, _ = await running.call("GET", f"/v1/availability?date={NEXT_SATURDAY}")
    before = await create(running, date="2026-11-27", idempotencyKey="before")

    assert (refused[0], refused[1]["code"]) == (409, "VENUE_INACTIVE")
    assert refused[1]["field"] == "date"  # an inactive venue names no field
    assert {(t["available"], t["blockedBy"]) for t in availability["tables"]} == {(False, None)}
    assert before[0] == 201
    assert "Travaux" in (await manager.get("/portal/venue/closings"))[1]


async def test_existing_reservations_are_shown_before_a_closing_and_are_kept(running, manager):
    _, created, _ = await create(running, date=NEXT_SATURDAY)
    form = {"first": "2026-11-27", "last": "2026-11-30", "reason": ""}

    status, page, _ = await manager.post("/portal/venue/closings", form)

    assert status == 409
    assert await running.live.database.read(list_closings) == []
    status, _, _ = await manager.post(
        "/portal/venue/closings", {**form, "accepted": value_of(page, "accepted")}
    )
    assert status == 303
    listed = (await manager.get("/portal/venue/closings"))[1]
    assert created["serviceReservationId"] in listed
    replayed = await create(running, date=NEXT_SATURDAY)
    assert (replayed[0], replayed[1]) == (200, created)
    _, availability, _ = await running.call("GET", f"/v1/availability?date={NEXT_SATURDAY}")
    assert not any(table["available"] for table in availability["tables"])
    assert [table["blockedBy"] for table in availability["tables"]][:2] == ["partner", None]


@pytest.mark.parametrize(
    ("first", "last"),
    [("2026-12-24", "2026-12-26"), ("2026-12-25", ""), ("2026-12-26", "2027-01-02"),
     ("2026-12-01", "2026-12-31")],
)  # fmt: skip
async def test_a_closed_day_cannot_be_closed_twice_and_reopening_opens_it(
    running, manager, first, last
):
    path = "/portal/venue/closings"
    await manager.post(path, {"first": "2026-12-24", "last": "2026-12-26", "reason": "Travaux"})

    status, page, _ = await manager.post(path, {"first": first, "last": last})

    assert (status, 'id="refused-first"' in page) == (400, True)
    [closing] = await running.live.database.read(list_closings)
    await manager.post(f"{path}/{closing.id}/remove")
    status, _, _ = await create(running, date="2026-12-25", idempotencyKey="open")
    assert status == 201


async def test_a_reservation_with_several_clashes_is_listed_once(running, manager):
    await guest(running, date=NEXT_SATURDAY)
    for path, form in (
        ("/portal/venue/closings", {"first": NEXT_SATURDAY}),
        (T1, await table_form(manager, bookable="")),
    ):
        _, page, _ = await manager.post(path, form)
        await manager.post(path, {**form, "accepted": value_of(page, "accepted")})

    page = (await manager.get("/portal/venue"))[1]

    assert "1 upcoming reservation no longer fits the venue" in page


@pytest.mark.parametrize("role", ["door", "owner"])
async def test_the_board_of_a_closed_evening_says_so_and_offers_no_table(running, manager, role):
    form = {"first": NEXT_SATURDAY, "reason": "Travaux <b>"}
    assert (await manager.post("/portal/venue/closings", form))[0] == 303
    person = await a_person(running, role)

    for path in ("/portal/tonight", "/portal/tonight/sheet"):
        _, closed, _ = await person.get(f"{path}?date={NEXT_SATURDAY}")
        _, opened, _ = await person.get(f"{path}?date={TONIGHT}")
        assert ("Travaux &lt;b&gt;" in closed, "Travaux" in opened) == (True, False)
        assert 'class="free"' not in closed
    _, rows, _ = await person.get(
        f"/portal/tonight/rows?date={NEXT_SATURDAY}&tables={table_id('T1')}"
    )
    assert (f"t-{table_id('T1')}" in rows, 'class="free"' in rows) == (True, False)


RULES = {"name": "Riad Atlas", "slug": "riad-atlas", "status": "active",
         "reservation_mode": "free", "names_at_door": "initial",
         "auto_confirm": "1", "request_expiry_hours": "24",
         "currency": "MAD", "time_zone": "Africa/Casablanca",
         "evening_ends_at": "06:00", "cancel_hours": "2", "reminder_hours": "24",
         "early_minutes": "120", "contact_days": "30",
         "payment_hours": "0"}  # fmt: skip


async def rules_form(person, **changes):
    seen = value_of((await person.get("/portal/venue/rules"))[1], "seen")
    return {**RULES, "seen": seen, **changes}


async def test_saved_rules_are_visible_to_partners(running, manager):
    form = await rules_form(
        manager, name="Riad Toubkal", status="inactive", reservation_mode="prepaid",
        auto_confirm="", request_expiry_hours="48", currency="EUR",
    )  # fmt: skip

    assert (await manager.post("/portal/venue/rules", form))[0] == 303

    _, found, _ = await running.call("GET", "/v1/venue")
    assert (found["venue"]["name"], found["venue"]["status"]) == ("Riad Toubkal", "inactive")
    assert (found["reservationMode"], found["autoConfirm"]) == ("prepaid", False)
    assert (found["requestExpiryHours"], found["currency"]) == (48, "EUR")
    assert (await create(running))[1]["code"] == "VENUE_INACTIVE"
    assert (await manager.post("/portal/venue/rules", form))[0] == 409


@pytest.mark.parametrize(
    "changes",
    [{"status": "asleep"}, {"reservation_mode": "x"},
     {"request_expiry_hours": "0"}, {"currency": "DIR"}, {"evening_ends_at": "13:00"},
     {"time_zone": "Mars/Base"}, {"time_zone": "../../etc/passwd"}, {"time_zone": ""},
     {"time_zone": "Africa"}, {"evening_ends_at": "6"}, {"map_url": "javascript:alert(1)"},
     {"map_url": "http://maps.example/riad"}, {"address": "a" * 201},
     {"phone": "call us"}, {"phone": "+212 5"}],
)  # fmt: skip
async def test_invalid_rules_are_refused(running, changes, manager):
    before = await running.live.database.read(get_venue)
    status, _, _ = await manager.post("/portal/venue/rules", await rules_form(manager, **changes))
    assert status == 400
    assert await running.live.database.read(get_venue) == before


async def test_address_map_link_and_phone_are_saved_and_an_empty_field_clears_them(
    running, manager
):
    place = {"address": "12, derb Dabachi, Marrakech", "map_url": "https://maps.example/riad",
             "phone": "+212 (0)524-00 00 00"}  # fmt: skip

    status, _, _ = await manager.post("/portal/venue/rules", await rules_form(manager, **place))

    assert status == 303
    venue = await running.live.database.read(get_venue)
    shown = {**place, "phone": "+212 5 24 00 00 00"}  # the number in its dialled form
    assert {name: getattr(venue, name) for name in place} == shown
    _, page, _ = await manager.get("/portal/venue/rules")
    assert place["address"] in page
    assert place["map_url"] in page
    assert value_of(page, "phone") == shown["phone"]
    await manager.post("/portal/venue/rules", await rules_form(manager))
    venue = await running.live.database.read(get_venue)
    assert {getattr(venue, name) for name in place} == {None}


async def test_the_evening_cannot_end_during_a_booked_slot(running, manager):
    await manager.post("/portal/venue/slots", [("start", "02:00"), ("end", "04:00"), ("days", "6")])
    assert (await create(running, slot="02:00", date=NEXT_SATURDAY))[0] == 201

    status, _, _ = await manager.post(
        "/portal/venue/rules", await rules_form(manager, evening_ends_at="01:00")
    )

    assert status == 409
    taken = await create(running, slot="02:00", date=NEXT_SATURDAY, idempotencyKey="b")
    assert taken[1]["code"] == "TABLE_TAKEN"


async def test_policies_from_the_portal_are_added_to_those_of_a_venue_file(running, manager):
    sql = "UPDATE venue SET policies = :policies"
    await running.live.database.write(
        lambda tx: tx.execute(sql, {"policies": '{"parking": "voiturier"}'})
    )
    form = await rules_form(
        manager, cancellation="24 h avant.", lateArrivalMinutes="20", minimumAge="", dressCode=""
    )

    assert (await manager.post("/portal/venue/rules", form))[0] == 303

    _, found, _ = await running.call("GET", "/v1/venue")
    assert found["policies"] == {
        "cancellation": "24 h avant.", "lateArrivalMinutes": 20, "parking": "voiturier",
    }  # fmt: skip
    empty = await rules_form(manager)
    await manager.post("/portal/venue/rules", empty)
    found = (await running.call("GET", "/v1/venue"))[1]["policies"]
    assert found == {"parking": "voiturier"}
