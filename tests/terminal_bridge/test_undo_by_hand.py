"""Taking a check-in back from the list: the latest of a party, with a reason."""


async def undo(door, guest, **body):
    return await door.call("POST", f"/check-ins/{guest.id}/undo", body)


async def come_in(door, guest, scan_id, arrivals):
    await door.scan(await door.pass_of(guest), scanId=scan_id, arrivals=arrivals)


async def test_the_latest_check_in_of_a_party_is_taken_back_with_its_reason(door):
    guest = await door.guest(guests=4)
    await come_in(door, guest, "one", 3)
    await come_in(door, guest, "two", 1)
    door.clock.advance(3600)

    status, verdict = await undo(door, guest, reason="Repartis", arrived=4)

    assert (status, verdict["result"], verdict["admitted"]) == (200, "undone", -1)
    assert verdict["reservation"]["arrived"] == 3
    told = "SELECT kind, reason, admitted FROM scan ORDER BY seq DESC LIMIT 1"
    assert await door.rows(told) == [("undo", "Repartis", -1)]


async def test_the_same_wish_again_takes_nothing_more_back(door):
    guest = await door.guest(guests=4)
    await come_in(door, guest, "one", 3)
    await come_in(door, guest, "two", 1)
    await undo(door, guest, reason="Repartis", arrived=4)

    status, refusal = await undo(door, guest, reason="Repartis", arrived=4)

    assert (status, refusal["code"]) == (409, "WRONG_STATE")
    assert (await door.now_of(guest)).arrived == 3


async def test_where_nobody_is_in_there_is_nothing_to_take_back(door):
    status, refusal = await undo(door, await door.guest(), reason="Erreur")

    assert (status, refusal["code"]) == (409, "WRONG_STATE")


async def test_without_a_reason_nobody_is_taken_back(door):
    guest = await door.guest()
    await come_in(door, guest, "one", 2)

    status, refusal = await undo(door, guest, reason=" ")

    assert (status, refusal["field"]) == (400, "reason")
    assert (await door.now_of(guest)).arrived == 2
