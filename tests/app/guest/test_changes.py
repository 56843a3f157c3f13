"""Changes that guests make through their link: what, until when, and who is notified."""

import pytest

from appliance.reservations.rows import get_reservation


async def post(world, guest, reservation: str, **form: str) -> int:
    path = f"{world.access(reservation)}/change"
    async with guest.post(path, data=form, allow_redirects=False) as answer:
        return answer.status


async def now_of(world, reservation: str):
    return await world.database.read(get_reservation, reservation)


async def told(world) -> list[str]:
    """Return the events and the kinds of emails so far."""
    sql = """SELECT type FROM event WHERE type <> 'reservation.created'
             UNION ALL SELECT kind FROM email"""
    return await world.database.read(lambda reader: [row[0] for row in reader.rows(sql)])


async def test_reducing_the_party_notifies_the_partner_the_guest_and_the_venue(world, guest):
    await world.database.write(lambda tx: tx.execute("UPDATE venue SET house_email = 'h@riad.ma'"))
    reservation = await world.reserve(date="2026-11-22")

    assert await post(world, guest, reservation, guests="1") == 303

    assert (await now_of(world, reservation)).guests == 1  # below the table's minimum
    assert await told(world) == ["reservation.updated", "changed", "house_changed"]


async def test_a_guest_cannot_flood_an_address_with_emails_by_reducing_the_party(world, guest):
    reservation = await world.reserve(date="2026-11-22", guests=12)

    for guests in range(11, 1, -1):
        world.clock.advance(1)
        assert await post(world, guest, reservation, guests=str(guests)) == 303

    assert (await told(world)).count("changed") == 6


@pytest.mark.parametrize("guests", ["0", "5", "-1", "2.5", ""])
async def test_a_guest_cannot_raise_the_party_or_reduce_it_to_none(world, guest, guests):
    reservation = await world.reserve(date="2026-11-22")

    assert await post(world, guest, reservation, guests=guests) == 400

    assert (await now_of(world, reservation)).guests == 4


async def test_a_guest_can_announce_a_late_arrival_and_withdraw_it(world, guest):
    reservation = await world.reserve()

    assert await post(world, guest, reservation, late="1") == 303
    assert (await now_of(world, reservation)).late_at == world.clock.now()
    assert await post(world, guest, reservation, late="0") == 303
    assert (await now_of(world, reservation)).late_at is None
    assert await told(world) == ["reservation.updated"] * 2


@pytest.mark.parametrize(
    ("now", "fewer", "late"),
    [("2026-11-21T17:29:59Z", 303, 303), ("2026-11-21T17:30:00Z", 409, 303),
     ("2026-11-21T19:44:59Z", 409, 303), ("2026-11-21T19:45:00Z", 409, 409)],
)  # fmt: skip
async def test_guests_cannot_change_anything_after_the_venues_deadline(
    world, guest, now, fewer, late
):
    kept = """UPDATE venue SET policies = '{"lateArrivalMinutes": 15}'"""
    await world.database.write(lambda tx: tx.execute(kept))
    reservation = await world.reserve()
    world.clock.set(now)

    assert await post(world, guest, reservation, guests="3") == fewer
    assert await post(world, guest, reservation, late="1") == late


async def test_after_the_deadline_the_page_shows_the_phone_number_instead(world, guest):
    await world.database.write(lambda tx: tx.execute("UPDATE venue SET phone = '05 24 00 00 00'"))
    path = f"{world.access(await world.reserve())}/change"

    async def has_number() -> bool:
        return 'href="tel:+212524000000"' in await (await guest.get(path)).text()

    world.clock.set("2026-11-21T17:29:59Z")
    assert not await has_number()
    world.clock.set("2026-11-21T17:30:00Z")
    assert await has_number()


async def test_guests_who_have_arrived_cannot_change_their_reservation(world, guest):
    reservation = await world.reserve(date="2026-11-22", checked_in_at=1, arrived=2)

    for form in ({"guests": "2"}, {"late": "1"}):
        assert await post(world, guest, reservation, **form) == 409


@pytest.mark.parametrize("status", ["cancelled", "declined"])
async def test_a_closed_reservation_cannot_be_changed_by_its_guest(world, guest, status):
    reservation = await world.reserve(date="2026-11-22", status=status)

    for form in ({"guests": "2"}, {"late": "1"}):
        assert await post(world, guest, reservation, **form) == 409
