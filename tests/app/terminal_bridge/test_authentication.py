"""How terminals authenticate, and what each role may do."""

import pytest

from terminal_bridge.api import TERMINAL_ROUTES

GUARDED = [(method, path) for method, path, _ in TERMINAL_ROUTES if not path.endswith("/pair")]


STRANGERS = (
    None, "", "Bearer", "Bearer x", "Basic dGVzdDp0ZXN0", f"Bearer term_{'0' * 64}",
    f"Bearer svc_live_{'0' * 48}", f"Bearer term_{'0' * 64} x",
)  # fmt: skip


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_every_call_is_refused_without_a_terminals_token(client, method, path):
    for authorization in STRANGERS:
        headers = {} if authorization is None else {"Authorization": authorization}
        url = path.replace("{scanId}", "one").replace("{id}", "one")

        async with client.request(method, url, headers=headers, json={}) as response:
            refusal = await response.json()

        assert (response.status, refusal["code"]) == (401, "UNAUTHORIZED"), authorization


async def test_a_terminal_of_the_test_environment_is_unknown_in_live(door, test_door):
    door.token, test_door.token = test_door.token, door.token

    assert (await door.call("GET", "/me"))[0] == 401
    assert (await test_door.call("GET", "/me"))[0] == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Sec-Fetch-Site": "same-origin"}, 200), ({"Sec-Fetch-Site": "cross-site"}, 401), ({}, 401)],
)
async def test_a_cookie_works_only_from_the_boxs_own_pages_and_a_token_from_anywhere(
    door, headers, status
):
    body = {"scanId": "one", "code": "x"}
    name = f"__Host-venuebox-terminal-{door.client.port}"
    cookie = {"Authorization": None, "Cookie": f"{name}={door.token}"}

    assert (await door.call("GET", "/me", headers=cookie))[0] == 200
    assert (await door.call("POST", "/scans", body, headers=headers | cookie))[0] == status
    assert (await door.call("POST", "/scans", body, headers=headers))[0] == 200


async def test_the_cookies_of_both_environments_are_separate(door, test_door):
    for kind, token, status in (
        ("terminal", door.token, 401),
        ("terminal-test", test_door.token, 200),
    ):
        name = f"__Host-venuebox-{kind}-{door.client.port}"
        cookie = {"Authorization": None, "Cookie": f"{name}={token}"}
        assert (await test_door.call("GET", "/me", headers=cookie))[0] == status


@pytest.mark.parametrize(
    ("role", "allowed"), [("scan", [200, 403, 403]), ("search", [200, 200, 200])]
)
async def test_a_role_includes_the_lower_ones_but_not_the_higher_ones(door, role, allowed):
    guest = await door.guest()
    there = await door.other(role=role)
    calls = [
        ("POST", "/scans", {"scanId": "one", "code": "nothing known"}),
        ("POST", "/check-ins", {"scanId": "two", "reservationId": guest.id}),
        ("GET", "/evening", None),
    ]

    assert [(await there.call(*call))[0] for call in calls] == allowed


@pytest.mark.parametrize("role", ["scan", "search"])
async def test_only_a_terminal_with_the_override_role_can_override(door, role):
    guest = await door.guest(status="pending")
    there = await door.other(role=role)
    text = await door.pass_of(guest)

    verdict = await there.scan(text)
    body = {"scanId": "two", "code": text, "override": {"reason": "ami"}}
    status, refusal = await there.call("POST", "/scans", body)

    assert verdict["overridable"] is False
    assert "override" not in verdict["actions"]
    assert (status, refusal["code"]) == (403, "SCOPE_MISSING")
    assert (await door.now_of(guest)).arrived == 0


async def test_the_last_use_of_a_terminal_is_stored_at_most_once_a_minute(door):
    start = door.clock.now()
    for _ in range(3):
        await door.call("GET", "/me")
        door.clock.advance(29)
    assert await door.rows("SELECT last_seen_at FROM terminal") == [(start,)]

    door.clock.advance(60)
    await door.call("GET", "/me")

    assert await door.rows("SELECT last_seen_at FROM terminal") == [(door.clock.now(),)]
