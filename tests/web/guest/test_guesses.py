"""Ten thousand guessed links: none opens anything, and no answer tells more than another."""

import random
import statistics
import string
import time

import pytest
from aiohttp.test_utils import make_mocked_request

from appliance.tokens import encode_url_safe
from terminal_bridge.context import ENVIRONMENT
from web.guest.access import access_page
from web.guest.claim import claim_page

GUESSES = 10_000
SAMPLES = 400


def a_guess(chance: random.Random, good: str) -> str:
    """Anything a stranger may try: noise of the right form, a real link with one letter changed."""
    kind = chance.randrange(3)
    if kind == 0:
        return encode_url_safe(chance.randbytes(33))
    if kind == 1:
        place = chance.randrange(len(good))
        letters = [c for c in string.ascii_letters + string.digits + "-_" if c != good[place]]
        return good[:place] + chance.choice(letters) + good[place + 1 :]
    length = chance.randrange(1, 60)
    return "".join(chance.choices(string.ascii_letters + string.digits + "-_", k=length))


async def ask(world, handler, token: str):
    """The answer of the page itself, without a network between."""
    request = make_mocked_request("GET", "/", app=world.app, match_info={"token": token})
    request[ENVIRONMENT] = world.environment
    return await handler(request)


@pytest.mark.proves("S11")
async def test_ten_thousand_guesses_open_nothing_and_are_answered_alike(world):
    reservation = await world.reserve()
    keyring = world.environment.keyring
    chance = random.Random(20261121)
    pages = ((access_page, keyring.access_token), (claim_page, keyring.claim_token))
    answers = set()

    for number in range(GUESSES):
        handler, token_of = pages[number % 2]
        answer = await ask(world, handler, a_guess(chance, token_of(reservation)))
        answers.add((answer.status, answer.body, tuple(sorted(answer.headers.items()))))

    assert len(answers) == 1
    assert answers.pop()[0] == 404


async def test_a_guess_costs_no_look_into_the_database(world, monkeypatch):
    asked = []
    monkeypatch.setattr(type(world.database), "read", lambda *_: asked.append("read"))

    for token in ("x", encode_url_safe(bytes(33))):
        assert (await ask(world, access_page, token)).status == 404

    assert asked == []


@pytest.mark.proves("S5")
async def test_no_guess_takes_visibly_longer_than_another(world):
    """Of the wrong form, of the right one, nearly right: medians within a quarter of each other.

    What the processor spends on each is measured, for the clock on the wall also shows what else
    the machine does. No guess waits for anything: the test above shows it.
    """
    good = world.environment.keyring.access_token(await world.reserve())
    near = [good[:-1] + c for c in "AQgw" if c != good[-1]]
    kinds = {
        "noise": lambda n: f"guess-{n}",
        "form": lambda n: encode_url_safe(n.to_bytes(33)),
        "near": lambda n: near[n % len(near)],
    }
    took = {kind: [] for kind in kinds}

    for number in range(SAMPLES):  # in turn, so that a busy moment is busy for all of them
        for kind, guess in kinds.items():
            token = guess(number)
            begun = time.thread_time()
            await ask(world, access_page, token)
            took[kind].append(time.thread_time() - begun)

    medians = [statistics.median(times) for times in took.values()]
    assert max(medians) < 1.25 * min(medians)
