"""A phone number that is typed on an Arabic, Persian or other keyboard is one."""

import pytest

from appliance.actions.amend_reservation import Amendment, amend_reservation
from appliance.actions.claim import Correction, correct
from appliance.actions.enter import enter_by_staff
from appliance.errors import ValidationError
from appliance.model.booking import is_phone, parse_booking
from appliance.store.erasing import find_reservations_of
from tests.builders import a_body, a_booking

TYPED, STORED = "+٢١٢ ٦٠٠ ٠٠٠ ٠٠٩", "+212 600 000 009"


@pytest.mark.parametrize("phone", [TYPED, "۰۶۰۰۰۰۰۰۰۹", "०६००००००", "０６００００００", STORED])
def test_digits_of_any_script_count(phone):
    assert is_phone(phone)


@pytest.mark.parametrize("phone", ["٠٦٠٠٠", "٠" * 21, "⁶⁶⁶⁶⁶⁶", "six six six"])
def test_too_few_too_many_and_what_only_looks_like_digits_do_not(phone):
    assert not is_phone(phone)


def test_a_partners_booking_may_bring_one():
    customer = {"name": "Salma Idrissi", "phone": TYPED}

    assert parse_booking(a_body(customer=customer)).customer_phone
    with pytest.raises(ValidationError):
        parse_booking(a_body(customer=customer | {"phone": "٠٦"}))


async def test_it_is_stored_with_0_to_9_whoever_writes_it_down(box):
    write = box.live.database.write
    made = await write(enter_by_staff, a_booking(customer_phone=TYPED), actor="staff:x")
    other = TYPED.replace("٩", "٨")
    amendment = Amendment(2, "Salma Idrissi", None, other, None)
    amended = await write(amend_reservation, made.id, made.version, amendment, actor="staff:x")
    corrected = await write(correct, made.id, Correction(phone=TYPED))

    assert made.customer_phone == STORED
    assert await box.live.database.read(find_reservations_of, None, TYPED) == [made.id]
    assert amended.customer_phone == "+212 600 000 008"
    assert corrected.customer_phone == STORED
