"""What no page of ours sends, in fields and addresses: refused, and never an accident."""

import asyncio

import pytest

from tests.web.portal.people import a_person
from tests.web.portal.test_sign_in import FROM_OURS, an_account

FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=b"
FIELD = 'Content-Disposition: form-data; name="password"\r\n'
HALVES = rb"name=Yasmine&link=x%23y&password=\ud800aaaaaaaaaaaaaa"
BODIES = {
    "half a character": (f"{FORM}; charset=unicode_escape", HALVES),
    "half a character, otherwise": (f"{FORM}; charset=raw_unicode_escape", HALVES),
    "half a character, in a part": (
        PARTS,
        f"--b\r\n{FIELD}Content-Type: text/plain; charset=unicode_escape\r\n\r\n".encode()
        + rb"\ud800"
        + b"\r\n--b--\r\n",
    ),
    "an encoding that nobody knows": (
        PARTS,
        f"--b\r\n{FIELD}Content-Transfer-Encoding: x-uuencode\r\n\r\nx\r\n--b--\r\n".encode(),
    ),
    "a packing that nobody knows": (
        PARTS,
        f"--b\r\n{FIELD}Content-Encoding: br\r\n\r\nx\r\n--b--\r\n".encode(),
    ),
}


@pytest.mark.proves("V1")
@pytest.mark.parametrize(("kind", "body"), BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize(
    "path", ["/portal/sign-in", "/portal/welcome", "/portal/setup", "/test/book"]
)
async def test_a_form_in_no_alphabet_is_refused(running, path, kind, body):
    await an_account(running)
    headers = {**FROM_OURS, "Content-Type": kind}
    async with running.client.post(path, data=body, headers=headers) as response:
        assert response.status in {404, 415}, response.status


@pytest.mark.parametrize(
    "path",
    [
        "/portal/tonight?date=0001-01-01",
        "/portal/tonight?date=9999-12-31",
        "/portal/tonight/rows?date=9999-12-31",
        "/portal/tonight/sheet?date=0001-01-01",
        "/portal/door/log/export?date=0001-01-01",
        "/portal/door/log/export?date=9999-12-31",
        "/portal/reservations/new?guests=12345abc",
        f"/portal/reservations/new?guests={'9' * 5000}",
        "/portal/reservations/new?date=9999-12-31",
    ],
)
async def test_an_address_that_no_page_links_to_is_no_accident(running, path):
    owner = await a_person(running)

    status, _, _ = await owner.get(path)

    assert status in {200, 400}


async def test_a_position_too_long_for_a_number_begins_anew(running):
    feed = running.live.feed
    after = f"{feed.position.partition('-')[0]}-{'9' * 5000}"

    listener = await feed.listen("staff:x", after, lambda _change: True)

    async with asyncio.timeout(60):
        assert [change.kind for change in await listener.take(20)] == ["reset"]
    feed.leave(listener)
