"""A one-time code becomes a terminal, and a terminal can be shut out."""

import base64
import re

import pytest

from appliance.actions.issue_terminal import issue_terminal
from appliance.actions.offer_pairing import Offered, offer_pairing
from appliance.actions.revoke_terminal import revoke_terminal
from appliance.errors import NotFound, Trouble
from appliance.model.guest_pass import decode_pass
from appliance.tokens import hash_token


async def offer(door, name="Porte 9", role="override") -> str:
    """The digits to type."""
    return (await offer_both(door, name, role)).code


async def offer_both(door, name="Porte 9", role="override") -> Offered:
    return await door.environment.database.write(offer_pairing, name, role)


def wrong(code: str) -> str:
    return f"{(int(code) + 1) % 10**8:08d}"


async def pair(door, code, device="one", **members):
    headers = {"Authorization": "", "X-Device": device}
    return await door.call("POST", "/pair", {"code": code, **members}, headers=headers)


async def test_a_code_makes_the_device_a_terminal_that_may_scan(door):
    status, paired = await pair(door, await offer(door), name="Téléphone de Nora", language="ar")

    assert status == 200
    assert paired["terminal"]["name"] == "Téléphone de Nora"
    assert (paired["terminal"]["role"], paired["terminal"]["language"]) == ("override", "ar")
    door.token = paired["token"]
    assert (await door.scan(await door.pass_of(await door.guest())))["result"] == "checked_in"


async def test_a_device_without_a_name_gets_the_one_it_was_offered_under(door):
    _, paired = await pair(door, await offer(door, "Porte 9", "scan"))

    assert (paired["terminal"]["name"], paired["terminal"]["role"]) == ("Porte 9", "scan")


async def test_the_keys_that_pairing_hands_out_verify_a_pass_without_the_box(door):
    _, paired = await pair(door, await offer(door))
    read = decode_pass(await door.pass_of(await door.guest()))

    (key,) = paired["publicKeys"]
    assert key["kid"] == read.guest_pass.kid
    assert read.is_signed_by(base64.urlsafe_b64decode(key["publicKey"] + "="))
    assert paired["venue"]["tag"] == read.guest_pass.venue_tag.hex()


@pytest.mark.proves("S13", "V6")
async def test_a_code_works_once(door):
    code = await offer(door)
    await pair(door, code)

    status, refusal = await pair(door, code)

    assert (status, refusal["code"]) == (401, "UNAUTHORIZED")


@pytest.mark.proves("S13", "V6")
async def test_a_code_dies_after_ten_minutes(door):
    codes = [await offer(door), await offer(door)]
    door.clock.advance(599.999)
    assert (await pair(door, codes[0]))[0] == 200
    door.clock.advance(0.001)

    assert (await pair(door, codes[1]))[0] == 401


async def test_a_code_may_be_typed_in_groups(door):
    code = await offer(door)

    assert (await pair(door, f" {code[:4]} {code[4:]} "))[0] == 200


@pytest.mark.parametrize(
    ("members", "field"),
    [({"code": "1234567"}, "code"), ({"code": 12345678}, "code"), ({"code": "123456789"}, "code"),
     ({"code": "A" * 42}, "code"), ({"code": "+" * 43}, "code"),
     ({"code": "12345678", "name": 7}, "name"), ({"code": "12345678", "name": "x" * 101}, "name"),
     ({"code": "12345678", "language": "de"}, "language"),
     ({"code": "12345678", "cookie": 1}, "cookie")],
)  # fmt: skip
async def test_a_malformed_request_is_refused_and_is_no_try(door, members, field):
    code = await offer(door)
    for _ in range(5):
        status, refusal = await door.call("POST", "/pair", members)
        assert (status, refusal["field"]) == (400, field)

    assert (await pair(door, code))[0] == 200


async def test_a_code_of_the_test_environment_pairs_nothing_with_live(door, test_door):
    code = await offer(test_door)

    assert (await pair(door, code))[0] == 401
    assert (await pair(test_door, code))[0] == 200


async def pair_browser(door) -> tuple[dict, str, str]:
    """(the answer, the cookie's name and value, its attributes)."""
    url = f"{door.environment.prefix}/terminal/v1/pair"
    body = {"code": await offer(door), "cookie": True}
    async with door.client.post(url, json=body) as response:
        assert response.status == 200
        cookie, _, attributes = response.headers["Set-Cookie"].partition("; ")
        return await response.json(), cookie, attributes


async def ask(door, method, path, cookie, **headers):
    url = f"{door.environment.prefix}/terminal/v1{path}"
    headers |= {"Cookie": cookie}
    async with door.client.request(method, url, headers=headers) as response:
        return response.status, await response.json(), response.headers


@pytest.mark.proves("V3")
async def test_a_browser_gets_its_token_in_a_cookie_that_scripts_and_other_sites_never_see(door):
    paired, cookie, attributes = await pair_browser(door)

    assert "token" not in paired
    assert re.fullmatch("__Host-venuebox-terminal=term_[0-9a-f]{64}", cookie)
    for attribute in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/"):
        assert attribute in attributes
    assert "Domain" not in attributes
    status, known, _ = await ask(door, "GET", "/me", cookie)
    assert (status, known["terminal"]) == (200, paired["terminal"])


async def test_the_browsers_cookie_of_each_environment_has_its_own_name(test_door):
    _, cookie, _ = await pair_browser(test_door)

    assert cookie.startswith("__Host-venuebox-terminal-test=term_")


async def test_who_asks_for_no_cookie_gets_none(door):
    async with door.client.post("/terminal/v1/pair", json={"code": await offer(door)}) as response:
        assert "Set-Cookie" not in response.headers


async def test_a_browser_that_unpairs_loses_its_cookie_and_its_access(door):
    _, cookie, _ = await pair_browser(door)

    status, _, headers = await ask(
        door, "POST", "/unpair", cookie, **{"Sec-Fetch-Site": "same-origin"}
    )

    assert status == 200
    assert headers["Set-Cookie"].startswith('__Host-venuebox-terminal=""; ')
    assert "Max-Age=0" in headers["Set-Cookie"]
    assert (await ask(door, "GET", "/me", cookie))[0] == 401


async def test_another_sites_page_cannot_unpair_a_browser(door):
    _, cookie, _ = await pair_browser(door)

    status, _, _ = await ask(door, "POST", "/unpair", cookie, **{"Sec-Fetch-Site": "cross-site"})

    assert status == 401
    assert (await ask(door, "GET", "/me", cookie))[0] == 200


@pytest.mark.proves("V14")
async def test_a_revoked_browser_is_told_to_forget_everything_it_keeps(door):
    paired, cookie, _ = await pair_browser(door)
    await door.environment.database.write(revoke_terminal, paired["terminal"]["id"])

    status, refusal, headers = await ask(door, "GET", "/me", cookie)

    assert (status, refusal["code"]) == (401, "KEY_REVOKED")
    assert headers["Clear-Site-Data"] == '"storage", "cookies"'


async def test_a_revoked_device_that_is_no_browser_is_told_without(door):
    await door.environment.database.write(revoke_terminal, door.terminal_id)

    headers = {"Authorization": f"Bearer {door.token}"}
    async with door.client.get("/terminal/v1/me", headers=headers) as response:
        assert (response.status, response.headers.get("Clear-Site-Data")) == (401, None)


async def test_another_sites_page_cannot_pair_a_browser(door):
    code = await offer(door)

    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        async with door.client.post("/terminal/v1/pair", json={"code": code}, headers=headers) as r:
            assert r.status == 401


@pytest.mark.proves("S13")
async def test_neither_codes_nor_tokens_are_stored_as_they_are(door):
    secret, code = await offer_both(door)
    _, paired = await pair(door, await offer(door))

    stored = str(await door.rows("SELECT * FROM pairing")) + str(
        await door.rows("SELECT * FROM terminal")
    )
    assert code not in stored
    assert secret not in stored
    assert paired["token"] not in stored
    assert (hash_token(door.token),) in await door.rows("SELECT token_hash FROM terminal")


@pytest.mark.proves("S13")
async def test_a_revoked_terminal_is_refused_on_its_next_request(door):
    await door.environment.database.write(revoke_terminal, door.terminal_id)

    status, refusal = await door.call("GET", "/me")

    assert (status, refusal["code"]) == (401, "KEY_REVOKED")
    assert (await door.call("POST", "/scans", {"scanId": "one", "code": "7K2M"}))[0] == 401
    assert await door.rows("SELECT * FROM scan") == []


async def test_revoking_leaves_the_other_terminals_alone(door):
    there = await door.other()
    await door.environment.database.write(revoke_terminal, door.terminal_id)

    assert (await there.call("GET", "/me"))[0] == 200


async def test_revoking_twice_keeps_the_first_instant(door):
    for _ in range(2):
        await door.environment.database.write(revoke_terminal, door.terminal_id)
        door.clock.advance(60)

    assert await door.rows("SELECT revoked_at FROM terminal") == [(door.clock.now() - 120_000,)]


async def test_an_unknown_terminal_cannot_be_revoked(door):
    with pytest.raises(NotFound):
        await door.environment.database.write(revoke_terminal, "nobody")


@pytest.mark.parametrize(
    ("name", "role", "language"),
    [
        ("", "scan", "fr"),
        ("x" * 101, "scan", "fr"),
        ("Porte", "boss", "fr"),
        ("Porte", "scan", "de"),
    ],
)
async def test_a_terminal_that_cannot_be_is_refused_in_one_sentence(door, name, role, language):
    with pytest.raises(Trouble):
        await door.environment.database.write(issue_terminal, name, role, language)


async def test_me_tells_what_a_terminal_has_to_know(door):
    status, known = await door.call("GET", "/me")

    assert status == 200
    assert known["terminal"] == {
        "id": door.terminal_id, "name": "Porte 1", "role": "override", "language": "fr",
    }  # fmt: skip
    assert (known["venue"]["name"], known["venue"]["timeZone"]) == (
        "Riad Atlas",
        "Africa/Casablanca",
    )
    assert (known["evening"], known["boxTime"]) == ("2026-11-21", "2026-11-21T19:00:00.000Z")
    assert len(known["publicKeys"]) == 1


async def test_the_evening_of_me_is_yesterdays_until_six(door):
    door.clock.set("2026-11-22T05:59:00Z")

    assert (await door.call("GET", "/me"))[1]["evening"] == "2026-11-21"
