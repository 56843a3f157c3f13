"""What a verdict says, to whom, and of whom it says nothing."""

import pytest


@pytest.mark.parametrize(
    ("language", "staff"),
    [("fr", "Entrée validée : Terrasse 1, 2 personnes."), ("en", "Let in: Terrasse 1, 2 guests."),
     ("ar", "يُسمح بالدخول: \u2068Terrasse 1\u2069، \u2068شخصان\u2069.")],
)  # fmt: skip
async def test_a_verdict_speaks_the_language_of_its_terminal(door, language, staff):
    there = await door.other(language=language)

    verdict = await there.scan(await door.pass_of(await door.guest()))

    assert verdict["say"]["staff"] == staff


@pytest.mark.proves("S4")
async def test_no_verdict_ever_shows_a_contact(door):
    guest = await door.guest(access_code="SVC-7K2M")
    text = await door.pass_of(guest)

    said = [await door.scan(code) for code in (text, text, "7K2M", "Salma")]
    said += [await door.call("GET", "/evening?q=457")]

    assert "salma@example.com" not in str(said)
    assert "123 457" not in str(said)
    assert "Idrissi" not in str(said)
