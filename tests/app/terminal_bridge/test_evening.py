"""The guest list of an evening."""

import json

import pytest


async def test_the_list_contains_tonight_and_counts_guests_and_reservations(door):
    await door.guest(guests=4, slot="19:30", table="T1")
    await door.guest(guests=2, table="T2")
    door.clock.advance(1)
    await door.guest(guests=3, table="T3", status="cancelled")
    await door.guest(guests=9, date="2026-11-22")
    late = await door.guest(guests=2, slot="22:00", table="T1", customer_name="Omar Alami")
    await door.scan(await door.pass_of(late), arrivals=1, override={"reason": "tôt"})

    status, evening = await door.call("GET", "/evening")

    assert status == 200
    assert evening["date"] == "2026-11-21"
    assert evening["totals"] == {
        "expected": {"people": 8, "reservations": 3},
        "arrived": {"people": 1, "reservations": 1},
        "inside": {"people": 1, "reservations": 1},
        "withoutTable": 0,
    }
    assert [(item["slot"], item["table"]["name"]) for item in evening["items"]] == [
        (None, "Terrasse 2"), (None, "Terrasse 3"),
        ("19:30", "Terrasse 1"), ("22:00", "Terrasse 1"),
    ]  # fmt: skip
    assert evening["items"][3]["checkedInAt"] == "2026-11-21T19:00:01.000Z"


async def test_a_list_entry_contains_what_the_door_needs_and_no_contact(door):
    guest = await door.guest(access_code="SVC-7K2M")

    _, evening = await door.call("GET", "/evening")

    assert evening["items"] == [
        {
            "id": guest.id,
            "accessCode": "SVC-7K2M",
            "customerFirstName": "Salma I.",
            "phoneEnd": "57",
            "searchedName": "Salma Idrissi",
            "table": {"id": guest.table_id, "name": "Terrasse 1", "number": "T1"},
            "date": "2026-11-21",
            "slot": None,
            "guests": 2,
            "arrived": 0,
            "notes": "Près de la fenêtre",
            "status": "confirmed",
            "checkedInAt": None,
            "source": "manual",
            "vip": False,
            "lateAt": None,
            "lateFrom": None,
            "out": 0,
            "wentOutAt": None,
            "gone": None,
            "walkIn": False,
        }
    ]


async def test_the_door_shows_the_complete_first_name(door):
    guest = await door.guest(customer_name="عبد الرحمن العلوي")

    verdict = await door.scan(await door.pass_of(guest))
    _, evening = await door.call("GET", "/evening")
    _, snapshot = await door.call("GET", "/snapshot")

    assert verdict["reservation"]["customerFirstName"] == "عبد الرحمن ع."
    assert evening["items"][0]["customerFirstName"] == "عبد الرحمن ع."
    assert json.loads(snapshot["payload"])["passes"][0]["firstName"] == "عبد الرحمن ع."


@pytest.mark.parametrize(
    "typed", ["T2", "34 57", "٣٤٥٧", "فاطمه", "الزَّهراء", "7k2m", "+212 600 123 457"]
)
async def test_searching_the_list_does_not_change_the_totals_of_the_evening(door, typed):
    guest = await door.guest(customer_name="فاطمة الزهراء", table="T2", access_code="SVC-7K2M")
    await door.guest(customer_name="Omar Alami", customer_phone="0600998877")

    _, evening = await door.call("GET", "/evening", params={"q": typed})

    assert [item["id"] for item in evening["items"]] == [guest.id]
    assert evening["totals"]["expected"] == {"people": 4, "reservations": 2}


async def test_another_evening_can_be_requested(door):
    guest = await door.guest(date="2026-11-22")

    _, evening = await door.call("GET", "/evening?date=2026-11-22")

    assert [item["id"] for item in evening["items"]] == [guest.id]


@pytest.mark.parametrize("date", ["", "tonight", "2026-02-30", "21/11/2026"])
async def test_an_invalid_date_is_refused(door, date):
    status, refusal = await door.call("GET", f"/evening?date={date}")

    assert (status, refusal["code"], refusal["field"]) == (400, "INVALID_DATE", "date")
