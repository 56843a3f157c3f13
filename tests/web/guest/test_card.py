from datetime import date, timedelta

import pytest

from web.guest.card import evening_in_words
from web.languages import load_languages

LANGUAGES = load_languages()
TONIGHT = date(2026, 11, 21)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (-1, ("Hier soir", "ven. 20 nov.")),
        (0, ("Ce soir", "sam. 21 nov.")),
        (1, ("Demain", "dim. 22 nov.")),
        (2, ("Lun. 23 nov.", None)),
        (300, ("Ven. 17 sept.", None)),
        (301, ("Sam. 18 sept. 2027", None)),
    ],
)
def test_an_evening_is_said_as_one_would(days, words):
    day = TONIGHT + timedelta(days=days)

    assert evening_in_words(day, TONIGHT, LANGUAGES.get("fr")) == words


async def test_tonight_lasts_until_the_evening_ends(world, guest):
    path = world.access(await world.reserve())

    world.clock.set("2026-11-22T05:59:00Z")
    assert "Ce soir" in await (await guest.get(path)).text()
    world.clock.set("2026-11-22T06:00:00Z")
    assert "Hier soir" in await (await guest.get(path)).text()


async def test_a_whole_evening_is_called_that(world, guest):
    path = world.access(await world.reserve(slot=None))

    html = await (await guest.get(path)).text()

    assert "Toute la soirée" in html
    assert "00:00" not in html


async def test_a_table_whose_name_is_its_number_is_named_once(world, guest):
    await world.database.write(lambda tx: tx.execute("UPDATE venue_table SET name = 't5'"))
    path = world.access(await world.reserve())

    html = await (await guest.get(path)).text()

    assert "<bdi>T5</bdi>" in html
    assert "<bdi>t5</bdi>" not in html
