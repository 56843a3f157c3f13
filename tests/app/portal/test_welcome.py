import asyncio

import pytest
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from appliance.staff.accounts import create_staff, invite_again
from appliance.staff.model import list_staff
from tests.app.portal.people import PASSWORD
from tests.conftest import running_box, with_settings


async def invite(running, name="Yasmine"):
    invitation = await running.live.database.write(create_staff, name, "owner")
    return invitation.secret


async def send(running, secret, password=PASSWORD, **headers):
    form = {"link": secret, "password": password}
    headers = {"Accept-Language": "en", **headers}
    async with running.client.post("/portal/welcome", data=form, headers=headers) as response:
        return response.status, await response.text()


async def stored_password(running):
    return await running.live.database.read(lambda tx: tx.value("SELECT password FROM staff"))


async def test_a_password_is_set_once_and_stored_as_argon2id(running):
    secret = await invite(running)

    status, page = await send(running, secret)

    assert status == 200
    assert 'href="/portal/sign-in"' in page
    stored = await stored_password(running)
    assert stored.startswith("$argon2id$")
    Argon2id.verify_phc_encoded(PASSWORD.encode(), stored)


async def test_the_language_is_set_by_the_first_link_and_kept_by_later_ones(running):
    await send(running, await invite(running), **{"Accept-Language": "ar"})
    [person] = await running.live.database.read(list_staff)
    again = await running.live.database.write(invite_again, person.id)
    await send(running, again.secret)
    assert [p.language for p in await running.live.database.read(list_staff)] == ["ar"]


async def test_a_long_sentence_in_any_script_is_an_acceptable_password(running):
    secret = await invite(running)
    assert (await send(running, secret, "جملة طويلة يسهل تذكرها ولا يعرفها أحد " * 4))[0] == 200


@pytest.mark.parametrize(
    ("peer", "proto", "private"),
    [("127.0.0.1", None, True), ("192.168.1.20", None, False), ("192.168.1.20", "https", False),
     ("10.0.0.5", None, False), ("10.0.0.5", "http", False), ("10.0.0.5", "https", True)],
)  # fmt: skip
async def test_a_password_is_accepted_only_locally_or_over_tls(
    tmp_path, clock, monkeypatch, peer, proto, private
):
    settings = with_settings(server={"trusted_proxies": ("10.0.0.0/8",)})
    async with running_box(tmp_path, clock, settings) as running:
        secret = await invite(running)
        monkeypatch.setattr("aiohttp.web_request.BaseRequest.remote", peer)
        headers = {} if proto is None else {"X-Forwarded-Proto": proto}

        async with running.client.get("/portal/welcome", headers=headers) as response:
            looked = response.status
        status, _ = await send(running, secret, **headers)

        assert (looked, status) == ((200, 200) if private else (403, 403))
        assert (await stored_password(running) is not None) is private


async def test_two_simultaneous_uses_of_a_link_set_only_one_password(running):
    secret = await invite(running)
    answers = await asyncio.gather(
        send(running, secret, "first of the two"), send(running, secret, "second of the two")
    )

    assert sorted(status for status, _ in answers) == [200, 404]
    winner = "first of the two" if answers[0][0] == 200 else "second of the two"
    Argon2id.verify_phc_encoded(winner.encode(), await stored_password(running))
