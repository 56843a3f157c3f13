"""Ten thousand passes that were tampered with: none is accepted, and none trips the box."""

import random

import pytest

from appliance.model.guest_pass import decode_pass, decode_passes
from appliance.store.readings import read_code
from tests.terminal_bridge.mutations import mutate

MANY = 10_000
SOME = 300


@pytest.mark.proves("G13", "S12")
async def test_a_pass_that_was_tampered_with_is_no_pass(door):
    seed = random.randrange(10**6)
    print(f"\nseed {seed}")
    chance = random.Random(seed)
    guests = [await door.guest(table=f"T{n}") for n in (1, 2, 3)]
    passes = [await door.pass_of(guest) for guest in guests]
    genuine = {decode_pass(text).signed for text in passes}
    environment = door.environment
    accepted, refused = [], 0

    for _ in range(MANY):
        text = mutate(chance, passes)
        reading = environment.database.peek(
            read_code, environment.keyring, "live", text, by_name=False
        )
        if reading.guest_pass is None:
            refused += 1
        elif reading.guest_pass.to_bytes() not in genuine:
            accepted.append(text)

    assert accepted == []
    assert refused > 0.9 * MANY  # the others say what they said before, in other spellings


@pytest.mark.proves("S12")
async def test_the_door_answers_each_of_them_with_a_verdict_and_lets_nobody_in(door):
    seed = random.randrange(10**6)
    print(f"\nseed {seed}")
    chance = random.Random(seed)
    passes = [await door.pass_of(await door.guest(table=f"T{n}")) for n in (1, 2)]
    genuine = {decode_pass(text).signed for text in passes}

    for _ in range(SOME):
        text = mutate(chance, passes).replace("\0", "") or "SVC1"  # JSON with NUL is refused
        if not any(read.signed in genuine for read in decode_passes(text)):
            assert (await door.scan(text, simulate=True))["colour"] == "red", text
