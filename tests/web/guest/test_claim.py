import pytest


async def test_the_page_shows_the_reservation_and_asks_for_a_tap(world, guest):
    reservation = await world.reserve()

    answer = await guest.get(world.claim(reservation))
    html = await answer.text()

    assert answer.status == 200
    assert "est-ce bien votre table" in html
    assert "Terrasse 5" in html
    assert '<form method="post"' in html
    assert "data-pass" not in html


async def test_the_tap_is_thanked_and_leads_to_the_pass(world, guest):
    reservation = await world.reserve()

    answer = await guest.post(world.claim(reservation), headers={"Sec-Fetch-Site": "same-origin"})
    html = await answer.text()

    assert answer.status == 200
    assert "Merci" in html
    assert f'href="{world.access(reservation)}?lang=fr"' in html


@pytest.mark.proves("S11")
async def test_a_second_tap_is_thanked_alike(world, guest):
    path = world.claim(await world.reserve())

    first, second = await guest.post(path), await guest.post(path)

    assert (first.status, second.status) == (200, 200)
    assert await first.read() == await second.read()


@pytest.mark.proves("S15")
async def test_a_tap_sent_by_another_sites_page_does_nothing(world, guest):
    path = world.claim(await world.reserve())

    answer = await guest.post(path, headers={"Sec-Fetch-Site": "cross-site"})

    assert answer.status == 403
    assert "Touchez encore une fois" in await answer.text()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_cancelled_reservation_cannot_be_claimed(world, guest, method):
    reservation = await world.reserve(status="cancelled")

    answer = await guest.request(method, world.claim(reservation))
    html = await answer.text()

    assert "Cette réservation est annulée" in html
    assert "<form" not in html
    assert "/access/" not in html


async def test_an_access_link_is_no_claim_link(world, guest):
    token = world.environment.keyring.access_token(await world.reserve())

    assert (await guest.get(f"/claim-guest/{token}")).status == 404
    assert (await guest.post(f"/claim-guest/{token}")).status == 404


async def test_a_dead_claim_link_answers_the_tap_as_it_answers_the_look(world, guest):
    looked, tapped = await guest.get("/claim-guest/x"), await guest.post("/claim-guest/x")

    assert (looked.status, tapped.status) == (404, 404)
    assert await looked.read() == await tapped.read()


async def test_a_reservation_without_a_name_is_still_asked_about(world, guest):
    path = world.claim(await world.reserve(customer_name=None))

    assert "Est-ce bien votre table" in await (await guest.get(path)).text()
