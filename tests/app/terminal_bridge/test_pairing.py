"""A device becomes a terminal with a one-time code, and terminals can be revoked."""

import base64
import re
from itertools import count

import pytest

from appliance.core.errors import OperatorError, ValidationError
from appliance.core.tokens import hash_token
from appliance.door.guest_pass import decode_pass
from appliance.door.terminals import (
    Offered,
    issue_terminal,
    offer_pairing,
    revoke_terminal,
)

NUMBERS = count(100)


async def offer(door, name=None, role="override") -> str:
    """Offer a pairing. Return the digits to type."""
    return (await offer_both(door, name, role)).code


async def offer_both(door, name=None, role="override", **actor) -> Offered:
    name = name or f"Porte {next(NUMBERS)}"
    return await door.environment.database.write(offer_pairing, name, role, **actor)


def wrong(code: str) -> str:
    return f"{(int(code) + 1) % 10**8:08d}"


async def pair(door, code, device="one", **members):
    headers = {"Authorization": "", "X-Device": device}
    return await door.call("POST", "/pair", {"code": code, **members}, headers=headers)


async def test_a_pairing_code_makes_the_device_a_terminal_that_can_scan(door):
    code = await offer(door)
    members = {"name": "Téléphone de Nora", "language": "ar"}
    status, paired = await pair(door, f" {code[:4]} {code[4:]} ", **members)

    assert status == 200
    assert paired["terminal"]["name"] == "Téléphone de Nora"
    assert (paired["terminal"]["role"], paired["terminal"]["language"]) == ("override", "ar")
    door.token = paired["token"]
    assert (await door.scan(await door.pass_of(await door.guest())))["result"] == "checked_in"


async def test_the_keys_from_pairing_verify_a_pass_without_the_box(door):
    _, paired = await pair(door, await offer(door, "Porte 9", "scan"))
    read = decode_pass(await door.pass_of(await door.guest()))

    assert (paired["terminal"]["name"], paired["terminal"]["role"]) == ("Porte 9", "scan")
    (key,) = paired["publicKeys"]
    assert key["kid"] == read.guest_pass.kid
    assert read.is_signed_by(base64.urlsafe_b64decode(key["publicKey"] + "="))
    assert paired["venue"]["tag"] == read.guest_pass.venue_tag.hex()


async def test_a_pairing_code_expires_after_ten_minutes(door):
    offers = [await offer_both(door), await offer_both(door)]
    door.clock.advance(599.999)
    assert (await pair(door, offers[0].code))[0] == 200
    door.clock.advance(0.001)

    assert (await pair(door, offers[1].code))[0] == 401
    assert (await pair(door, offers[1].secret))[0] == 401


@pytest.mark.parametrize(
    ("members", "field"),
    [({"code": "1234567"}, "code"), ({"code": 12345678}, "code"), ({"code": "123456789"}, "code"),
     ({"code": "A" * 42}, "code"), ({"code": "+" * 43}, "code"),
     ({"code": "12345678", "name": 7}, "name"), ({"code": "12345678", "name": "x" * 101}, "name"),
     ({"code": "12345678", "language": "de"}, "language"),
     ({"code": "12345678", "cookie": 1}, "cookie")],
)  # fmt: skip
async def test_a_malformed_pairing_request_is_refused_and_does_not_count_as_an_attempt(
    door, members, field
):
    code = await offer(door)
    for _ in range(5):
        status, refusal = await door.call("POST", "/pair", members)
        assert (status, refusal["field"]) == (400, field)

    assert (await pair(door, code))[0] == 200


async def test_a_pairing_code_of_the_test_environment_does_not_work_in_live(door, test_door):
    for offered in [await offer_both(test_door), await offer_both(test_door)]:
        assert (await pair(door, offered.code))[0] == 401
        assert (await pair(door, offered.secret))[0] == 401
    assert (await pair(test_door, offered.code))[0] == 200


async def pair_browser(door) -> tuple[dict, str, str]:
    """Return (the answer, the cookie's name and value, its attributes)."""
    url = f"{door.environment.prefix}/terminal/v1/pair"
    body = {"code": await offer(door), "cookie": True}
    async with door.client.post(url, json=body) as response:
        assert response.status == 200
        cookie, _, attributes = response.headers["Set-Cookie"].partition("; ")
        return await response.json(), cookie, attributes


def deletes(header, cookie):
    """Whether the Set-Cookie header deletes `cookie`."""
    return header.startswith(f'{cookie.partition("=")[0]}=""; ') and "Max-Age=0" in header


async def ask(door, method, path, cookie, **headers):
    url = f"{door.environment.prefix}/terminal/v1{path}"
    headers |= {"Cookie": cookie}
    async with door.client.request(method, url, headers=headers) as response:
        return response.status, await response.json(), response.headers


async def test_a_browser_gets_its_token_in_a_cookie_invisible_to_scripts_and_other_sites(door):
    paired, cookie, attributes = await pair_browser(door)

    assert "token" not in paired
    assert re.fullmatch("__Host-venuebox-terminal-[0-9]+=term_[0-9a-f]{64}", cookie)
    for attribute in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/"):
        assert attribute in attributes
    assert "Domain" not in attributes
    status, known, _ = await ask(door, "GET", "/me", cookie)
    assert (status, known["terminal"]) == (200, paired["terminal"])


async def test_unpairing_a_browser_ends_its_access_and_deletes_its_cookie(door):
    _, cookie, _ = await pair_browser(door)
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert (await ask(door, "POST", "/unpair", cookie, **foreign))[0] == 401
    assert (await ask(door, "GET", "/me", cookie))[0] == 200

    status, _, headers = await ask(
        door, "POST", "/unpair", cookie, **{"Sec-Fetch-Site": "same-origin"}
    )

    assert status == 200
    assert deletes(headers["Set-Cookie"], cookie)
    assert (await ask(door, "GET", "/me", cookie))[0] == 401


async def test_a_revoked_browser_is_told_to_delete_its_stored_data(door):
    paired, cookie, _ = await pair_browser(door)
    await door.environment.database.write(revoke_terminal, paired["terminal"]["id"])

    status, refusal, headers = await ask(door, "GET", "/me", cookie)

    assert (status, refusal["code"]) == (401, "KEY_REVOKED")
    assert headers["Clear-Site-Data"] == '"storage"'
    assert deletes(headers["Set-Cookie"], cookie)


async def test_pairing_codes_and_tokens_are_stored_only_as_hashes(door):
    secret, code = await offer_both(door)
    _, paired = await pair(door, await offer(door))

    stored = str(await door.rows("SELECT * FROM pairing")) + str(
        await door.rows("SELECT * FROM terminal")
    )
    assert code not in stored
    assert secret not in stored
    assert paired["token"] not in stored
    assert (hash_token(door.token),) in await door.rows("SELECT token_hash FROM terminal")


@pytest.mark.parametrize(
    ("name", "role", "language"),
    [("", "scan", "fr"), ("x" * 101, "scan", "fr"), ("P", "boss", "fr"), ("P", "scan", "de")],
)
async def test_a_terminal_with_an_invalid_name_role_or_language_is_refused(
    door, name, role, language
):
    with pytest.raises(OperatorError):
        await door.environment.database.write(issue_terminal, name, role, language)


async def test_the_me_call_returns_what_a_terminal_needs(door):
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


async def guess(door, code, times):
    """Make wrong attempts, each from another device."""
    for number in range(times):
        assert (await pair(door, wrong(code), f"stranger {number}"))[0] == 401


async def test_five_wrong_attempts_invalidate_all_pairing_codes_but_no_pairing_links(door):
    offers = [await offer_both(door) for _ in range(3)]
    await guess(door, offers[0].code, 4)
    assert (await pair(door, offers.pop().code))[0] == 200

    await guess(door, offers[0].code, 1)

    assert [(await pair(door, each.code))[0] for each in offers] == [401, 401]
    assert [(await pair(door, each.secret))[0] for each in offers] == [200, 200]
    assert (await pair(door, await offer(door)))[0] == 200  # a pairing that is offered later


async def test_a_device_gets_three_attempts_and_cannot_invalidate_codes_alone(door):
    offered = await offer_both(door)

    tries = [await pair(door, wrong(offered.code), "stranger") for _ in range(50)]

    assert [status for status, _ in tries] == [401] * 3 + [429] * 47
    assert tries[-1][1]["code"] == "RATE_LIMITED"
    assert await door.rows("SELECT tries FROM pairing") == [(3,)]
    assert (await pair(door, offered.code, "Nora"))[0] == 200


async def test_an_attempt_with_a_wrong_pairing_secret_changes_nothing(door):
    offered = await offer_both(door)
    commits = door.environment.database.commits

    for number in range(200):
        assert (await pair(door, f"{number:043d}", "stranger"))[0] == 401

    assert door.environment.database.commits == commits
    assert (await pair(door, offered.code, "stranger"))[0] == 200


async def test_the_link_and_the_code_of_a_pairing_offer_work_only_once_together(door):
    first, second = await offer_both(door), await offer_both(door)
    assert (await pair(door, first.secret))[0] == 200
    assert (await pair(door, second.code))[0] == 200

    for used in (first.code, first.secret, second.code, second.secret):
        status, refusal = await pair(door, used)
        assert (status, refusal["code"]) == (401, "UNAUTHORIZED")


async def test_terminal_names_are_unique(door):
    await door.other("Porte Été")
    with pytest.raises(ValidationError):
        await offer_both(door, "porte ete")
    paired = []
    for _ in range(3):
        _, answer = await pair(door, await offer(door), name="PORTE ÉTÉ")
        paired.append(answer["terminal"]["name"])
    assert paired == ["PORTE ÉTÉ (2)", "PORTE ÉTÉ (3)", "PORTE ÉTÉ (4)"]


async def test_a_later_pairing_offer_for_a_name_replaces_the_earlier_one(door):
    first, second = await offer_both(door, "Porte 9"), await offer_both(door, "Porte 9")
    assert [(await pair(door, each.secret))[0] for each in (first, second)] == [401, 200]


async def test_the_audit_log_names_who_created_the_pairing_offer(door):
    offered = await offer_both(door, "Porte 9", actor="staff:yasmine")
    await pair(door, offered.code)
    [(actor,)] = await door.rows("SELECT actor FROM audit_log ORDER BY seq DESC LIMIT 1")
    assert actor == "staff:yasmine"
