"""The door finds a guest however the keyboard at hand writes them."""

import pytest


@pytest.mark.parametrize(
    "typed", ["T2", "t2", "34 57", "٣٤٥٧", "فاطمه", "فـاطمة", "الزَّهراء", "+212 600 123 457"]
)
async def test_the_evening_list_finds_who_is_meant_and_nobody_else(door, typed):
    guest = await door.guest(customer_name="فاطمة الزهراء", table="T2")
    await door.guest(customer_name="Salma Idrissi", table="T1", customer_phone="0611111111")

    _, evening = await door.call("GET", "/evening", params={"q": typed})

    assert [item["id"] for item in evening["items"]] == [guest.id]


@pytest.mark.parametrize("typed", ["فاطمه", "فَاطِمَة", "فـاطمة"])
async def test_a_name_is_searched_however_it_is_written(door, typed):
    guest = await door.guest(customer_name="فاطمة الزهراء")

    verdict = await door.scan(typed)

    assert verdict["result"] == "ambiguous"
    assert [one["id"] for one in verdict["candidates"]] == [guest.id]


async def test_a_code_typed_with_arabic_digits_is_that_code(door):
    await door.guest(access_code="SVC-7K2M")

    assert (await door.scan("٧K٢M"))["result"] == "checked_in"
