"""Links to guests' pages: their lifetime, and the answers to expired or guessed ones."""

import base64
import statistics
import time

import pytest
from aiohttp.test_utils import make_mocked_request
from yarl import URL

from appliance.core.tokens import encode_url_safe
from appliance.http.request import ENVIRONMENT
from tests.app.portal.seating import seat
from web.guest.access import access_page


async def dead_links(world) -> list[str]:
    """Return tokens that are wrong in every way, and an expired one."""
    keyring, reservation = world.environment.keyring, await world.reserve(date="2026-11-20")
    good = keyring.access_token(reservation, 0)
    raw = base64.urlsafe_b64decode(good)
    return [
        good,  # expired: it is past noon of the day after the evening
        keyring.access_token("0192f0c1-0000-7000-8000-00000000dead", 0),
        keyring.claim_token(reservation, 0),
        good[:-1],
        good + "A",
        base64.urlsafe_b64encode(raw[:-1] + bytes([raw[-1] ^ 1])).decode(),
        "x",
        "é",
        "%00",
        "..%2f..%2fetc",
        "",
        f"{good}/",
        f"{good}/card/of/another",
        "A" * 44,
        "A" * 4000,
        reservation,
    ]


async def test_expired_unknown_and_malformed_links_get_the_same_page(world, guest):
    answers = [await guest.get(f"/access/{token}") for token in await dead_links(world)]
    pages = {(answer.status, await answer.read()) for answer in answers}
    headers = [{k: v for k, v in answer.headers.items() if k != "Date"} for answer in answers]

    for path in ("/claim-guest/x", "/access/x/calendar.ics"):
        answer = await guest.get(path)
        pages.add((answer.status, await answer.read()))

    assert len(pages) == 1
    assert all(one == headers[0] for one in headers)
    assert pages.pop()[0] == 404


PASTED = [
    "{}.", "{})", "{}),", "{}%22", "{}%20", "{}%2520", "{}/", "{}//", "{}%E2%80%8B", "{}%EF%BB%BF",
    "{}*", "{}_", "{}…", "{}%3E", "{}/card", "{}%20see%20you", "{}&utm_source=x",
]  # fmt: skip


@pytest.mark.parametrize("pasted", PASTED)
@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_a_link_pasted_with_extra_characters_still_opens(worlds, guest, pasted, prefix):
    world = worlds[bool(prefix)]
    reservation = await world.reserve()
    for path in (world.access(reservation), world.claim(reservation)):
        answer = await guest.get(pasted.format(path), allow_redirects=False)

        assert (answer.status, answer.headers["Location"]) == (302, path), path
        assert (await guest.get(answer.headers["Location"])).status == 200


async def test_a_pasted_link_keeps_its_language_and_query(world, guest):
    path = world.access(await world.reserve())
    halves = path.rpartition("/")
    pasted = {f"{path}&lang=ar": f"{path}?lang=ar", f"{path}.?lang=en&x=1": f"{path}?lang=en&x=1",
              f"{halves[0]}/%20%3C{halves[2]}": path,
              f"{path}%20/calendar.ics": f"{path}/calendar.ics", f"{halves[0]}//{halves[2]}": path,
              f"{path[:20]}%E2%80%8B{path[20:]}": path}  # fmt: skip
    for wrong, right in pasted.items():
        answer = await guest.get(wrong, allow_redirects=False)
        assert answer.headers.get("Location") == right, wrong


async def test_a_pasted_link_with_a_foreign_address_still_opens(running):
    reservation = await seat(running)
    path = f"/access/{running.live.keyring.access_token(reservation.id, 0)}"
    for wrong in (f"/{path}", f"///{path}/", f"{path}%0A", path.replace("access", "Access")):
        url = URL(f"{running.client.make_url('')}".rstrip("/") + wrong, encoded=True)
        async with running.client.session.get(
            url, headers={"Accept": "text/html"}, allow_redirects=False
        ) as answer:
            assert (answer.status, answer.headers.get("Location")) == (302, path), wrong


async def test_a_link_of_the_other_environment_does_not_open(worlds, guest):
    live, test = worlds
    token = test.environment.keyring.access_token(await live.reserve(), 0)
    assert (await guest.get(f"/access/{token}")).status == 404
    assert (await guest.get(f"/test/access/{token}")).status == 404


SAMPLES = 200


async def ask(world, token: str):
    """Call the handler directly and return its answer."""
    request = make_mocked_request("GET", "/", app=world.app, match_info={"token": token})
    request[ENVIRONMENT] = world.environment
    return await access_page(request)


@pytest.mark.slow
async def test_response_times_do_not_reveal_whether_a_guessed_link_is_close(world):
    """The median times for three kinds of guesses differ by less than a quarter.

    Measures processor time, because wall-clock time also depends on other processes.
    """
    good = world.environment.keyring.access_token(await world.reserve(), 0)
    near = [good[:-1] + c for c in "AQgw" if c != good[-1]]
    kinds = {
        "noise": lambda n: f"guess-{n}",
        "form": lambda n: encode_url_safe(n.to_bytes(33)),
        "near": lambda n: near[n % len(near)],
    }
    took = {kind: [] for kind in kinds}

    for number in range(SAMPLES):  # alternate, so that other load slows all kinds equally
        for kind, guess in kinds.items():
            token = guess(number)
            begun = time.thread_time()
            await ask(world, token)
            took[kind].append(time.thread_time() - begun)

    medians = [statistics.median(times) for times in took.values()]
    assert max(medians) < 1.25 * min(medians)
