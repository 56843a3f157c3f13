"""The booking page: what it offers, and what a guest books on it."""

import asyncio

import pytest

from tests.builders import TONIGHT, table_id
from tests.conftest import with_settings
from tests.web.guest.booking_form import (
    SAME_ORIGIN,
    a_form,
    cookie_of,
    reservations,
    rows,
    send,
    token_of,
)


@pytest.fixture
def settings():
    return with_settings(booking={"enabled": True, "hourly_for_address": 1000, "hourly": 1000})


@pytest.mark.usefixtures("early")
async def test_the_page_offers_the_hours_of_the_evening_and_their_free_tables(world, guest):
    await world.reserve(table_id=table_id("T1"))

    html = await (await guest.get("/book?guests=3")).text()

    assert "Dîner" in html
    assert "Soirée" in html
    assert "Brunch" not in html  # that is for Sundays
    assert "4 tables libres" in html
    assert "5 tables libres" in html
    assert f'value="{table_id("T6")}"' not in html  # not for booking


@pytest.mark.usefixtures("early")
async def test_a_booking_is_confirmed_leads_to_its_page_and_to_this_devices_list(world, guest):
    answer = await send(guest, a_form(await token_of(world, guest)))
    place = answer.headers["Location"]
    html = await (await guest.get(place)).text()

    assert answer.status == 303
    assert place.startswith("/book/")
    assert "Votre table est réservée" in html
    assert "Youssef El Amrani" in html
    assert await reservations(world) == [
        ("T2", "19:30", 2, "confirmed", "platform", "Youssef El Amrani", "fr")
    ]
    mine = await (await guest.get("/me", headers=cookie_of(answer))).text()
    assert "T2" in mine


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize(
    ("mode", "auto", "status", "kind", "words"),
    [
        ("free", 1, "confirmed", "confirmation", "Votre table est réservée"),
        ("free", 0, "requested", "requested", "Votre demande est chez nous"),
        ("prepaid", 1, "pending", "payment_due", "Votre table vous est gardée"),
    ],
)
async def test_each_kind_of_venue_answers_in_its_way_and_writes_the_letter_for_it(
    world, guest, mode, auto, status, kind, words
):
    await world.database.write(
        lambda tx: tx.execute(
            "UPDATE venue SET reservation_mode = :m, auto_confirm = :a", {"m": mode, "a": auto}
        )
    )

    answer = await send(guest, a_form(await token_of(world, guest)))

    assert words in await (await guest.get(answer.headers["Location"])).text()
    assert [row[3] for row in await reservations(world)] == [status]
    assert await rows(world, "SELECT kind, recipient FROM letter") == [
        (kind, "youssef@example.org")
    ]


@pytest.mark.usefixtures("early")
async def test_a_double_tap_books_once(world, guest):
    form = a_form(await token_of(world, guest))

    answers = await asyncio.gather(*(send(guest, form) for _ in range(5)))

    assert {answer.status for answer in answers} == {303}
    assert len({answer.headers["Location"] for answer in answers}) == 1
    assert len(await reservations(world)) == 1
    assert len(await rows(world, "SELECT 1 FROM letter")) == 1


@pytest.mark.usefixtures("early")
async def test_the_house_chooses_the_smallest_table_that_seats_the_party(world, guest):
    await world.database.write(
        lambda tx: tx.execute("UPDATE venue_table SET capacity_max = 2 WHERE number = 'T4'")
    )

    await send(guest, a_form(await token_of(world, guest), **{"table-19:30": ""}))

    assert [row[0] for row in await reservations(world)] == ["T4"]


@pytest.mark.usefixtures("early")
async def test_the_whole_evening_may_be_booked(world, guest):
    await send(guest, a_form(await token_of(world, guest), when="evening"))

    assert [row[1] for row in await reservations(world)] == [None]


@pytest.mark.usefixtures("early")
async def test_who_comes_second_hears_which_tables_are_free_and_loses_nothing(world, guest):
    token = await token_of(world, guest)
    await world.reserve(table_id=table_id("T2"))

    answer = await send(guest, a_form(token, notes="Sans noix"))
    html = await answer.text()

    assert answer.status == 409
    assert "Encore libres à cette heure\N{NO-BREAK SPACE}: \u2068T1, T3, T4, T5\u2069." in html
    assert 'value="Youssef El Amrani"' in html
    assert "Sans noix</textarea>" in html
    assert (await send(guest, a_form(token, **{"table-19:30": table_id("T3")}))).status == 303


@pytest.mark.usefixtures("early")
async def test_who_finds_the_hour_full_hears_which_hours_are_not(world, guest):
    token = await token_of(world, guest)
    for number in ("T1", "T2", "T3", "T4", "T5"):
        await world.reserve(table_id=table_id(number))

    answer = await send(guest, a_form(token, **{"table-19:30": ""}))
    html = await answer.text()

    assert answer.status == 409
    assert "Encore libre\N{NO-BREAK SPACE}: \u206822:00\u2069." in html
    assert "Complet" in html


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": " "}, "Écrivez votre nom."),
        ({"name": "x" * 201}, "trop long"),
        ({"email": "", "phone": ""}, "Indiquez un e-mail ou un téléphone."),
        ({"email": "youssef@"}, "Cette adresse e-mail ne peut pas être juste"),
        ({"phone": "12"}, "Ce numéro ne peut pas être juste"),
        ({"notes": "x" * 501}, "trop long"),
        ({"when": ""}, "Choisissez une heure."),
        ({"when": "25:00"}, "Choisissez une heure."),
    ],
)
async def test_a_field_that_is_wrong_says_so_and_books_nothing(world, guest, changes, words):
    answer = await send(guest, a_form(await token_of(world, guest), **changes))

    assert answer.status == 400
    assert words in await answer.text()
    assert await reservations(world) == []


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"guests": "99"}, 409),
        ({"guests": "x"}, 409),
        ({"date": "2026-11-20"}, 409),
        ({"date": "2030-01-01"}, 409),
        ({"when": "12:00", "table-12:00": ""}, 409),
        ({"table-19:30": table_id("T6")}, 409),
        ({"table-19:30": "01890000-0000-7000-8000-000000000000"}, 409),
    ],
)
async def test_what_is_not_offered_is_not_booked(world, guest, changes, status):
    answer = await send(guest, a_form(await token_of(world, guest), **changes))

    assert answer.status == status
    assert 'role="alert"' in await answer.text()
    assert await reservations(world) == []


async def test_an_hour_that_has_begun_is_neither_offered_nor_booked(world, guest):
    token = await token_of(world, guest)
    world.clock.set("2026-11-21T19:40:00Z")

    html = await (await guest.get("/book")).text()
    answer = await send(guest, a_form(token))

    assert "Déjà commencé" in html
    assert answer.status == 409
    assert await reservations(world) == []


@pytest.mark.usefixtures("early")
async def test_a_closing_day_says_so(world, guest):
    await world.database.write(
        lambda tx: tx.insert(
            "closing_day",
            {"id": tx.new_id(), "first_day": TONIGHT, "last_day": TONIGHT, "reason": "Travaux"},
        )
    )

    html = await (await guest.get("/book")).text()

    assert "La maison est fermée ce soir-là" in html
    assert "tables libres" not in html
    assert "Travaux" not in html
    assert f'<button class="chip-button" name="date" value="{TONIGHT}"' not in html
    assert '<button class="chip-button" name="date" value="2026-11-22"' in html


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_venue_that_is_not_active_takes_no_booking(world, guest, method):
    token = await token_of(world, guest)
    await world.database.write(lambda tx: tx.execute("UPDATE venue SET status = 'inactive'"))

    answer = await guest.request(method, "/book", data=a_form(token), headers=SAME_ORIGIN)

    assert "Pas de réservation sur cette page" in await answer.text()
    assert await reservations(world) == []


class TestUnlessTheVenueOpensIt:
    @pytest.fixture
    def settings(self):
        return with_settings()

    @pytest.mark.parametrize("method", ["GET", "POST"])
    async def test_the_live_page_books_nothing(self, guest, method):
        answer = await guest.request(method, "/book", headers=SAME_ORIGIN)

        assert answer.status == 404
        assert "Pas de réservation sur cette page" in await answer.text()

    async def test_the_test_page_does(self, worlds, guest):
        test_world = worlds[1]
        test_world.clock.set("2026-11-21T12:00:00Z")
        token = await token_of(test_world, guest, "/test/book")

        answer = await send(guest, a_form(token), "/test/book")

        assert answer.headers["Location"].startswith("/test/book/")
        assert len(await reservations(test_world)) == 1
