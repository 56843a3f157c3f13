"""What a scanner types presses no button, whatever stands in the code that it was shown."""

import pytest

CONTACT = ["BEGIN:VCARD", "N:Li", "END:VCARD"]  # of a guest's own code, a line after the other


@pytest.mark.parametrize("lines", [["TABLE FOR TWO 2026"], CONTACT])
async def test_nobody_is_let_in_from_the_open_sheet_by_a_code_of_something_else(door, lines):
    guest = await door.guest()
    phone = await door.phone()
    await phone.page.click("#open-list")
    await phone.page.click("#guests button")
    await phone.page.focus("#guest-go")
    answered = "() => document.getElementById('verdict').dataset.result !== undefined"

    for line in lines:
        await phone.wedge(line)
    await phone.until(answered)
    await phone.scan("SOMETHING ELSE AGAIN")

    assert (await door.now_of(guest)).arrived == 0
    assert await door.rows("SELECT count(*) FROM scan WHERE admitted > 0") == [(0,)]


async def test_people_press_buttons_by_space_and_enter_as_ever(door):
    await door.guest(guests=4)
    phone = await door.phone()
    await phone.page.click("#open-list")
    await phone.page.click("#guests button")

    await phone.page.focus("#guest-stepper [data-step='-1']")
    await phone.page.keyboard.press("Space")
    await phone.page.keyboard.press("Space")
    assert await phone.page.inner_text("#guest-stepper output") == "2"
    await phone.page.focus("#guest-go")
    await phone.page.keyboard.press("Enter")

    assert await phone.result() == "checked_in"
    assert "2 / 4" in await phone.page.inner_text("#verdict-facts")
