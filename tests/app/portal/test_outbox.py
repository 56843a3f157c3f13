import re

import pytest

from tests.builders import a_body, a_key

OUTBOX = "/test/outbox"


@pytest.fixture
async def booked(running):
    """Book in the test environment for a guest with an email address. Return the answer."""
    body = a_body(customer={"name": "<b>Salma</b> Idrissi", "email": "salma@guest.example"})
    status, answer, _ = await running.call("POST", "/test/v1/reservations", json=body)
    assert (status, answer["notifications"]["email"]) == (201, "sent")
    return answer


async def get(running, path, **headers):
    async with running.client.get(path, headers=headers) as response:
        return response.status, await response.text(), response.headers


async def letter_path(running):
    _, page, _ = await get(running, OUTBOX)
    return re.search(rf'href="({OUTBOX}/[0-9a-f-]+)"', page)[1]


async def test_an_email_of_the_test_environment_is_kept_and_can_be_read(running, booked):
    status, page, _ = await get(running, OUTBOX)
    assert status == 200
    assert "salma@guest.example" in page

    status, page, _ = await get(running, await letter_path(running))
    assert status == 200
    assert booked["accessCode"] in page
    assert booked["guestAccessUrl"] in page
    assert "data:image/png;base64," in page
    assert "cid:" not in page


async def test_a_displayed_email_runs_no_script_and_loads_nothing(running, booked):
    _, page, headers = await get(running, await letter_path(running))

    assert "<script" not in page
    assert '<iframe title="The letter' in page
    assert 'sandbox="allow-popups allow-popups-to-escape-sandbox"' in page
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "<b>Salma" not in page


@pytest.mark.parametrize(
    "headers",
    [{"Host": "box.example"}, {"Host": "192.168.1.20:8080"}, {"Host": "riad-atlas.local"},
     {"X-Forwarded-For": "203.0.113.9"}, {"Forwarded": "for=203.0.113.9"}, {"Via": "1.1 tunnel"},
     {"Authorization": "Bearer svc_test_" + "0" * 48}, {"Authorization": "Basic eDp5"},
     {"Authorization": ""}],
)  # fmt: skip
async def test_the_outbox_can_be_read_only_from_this_machine_or_with_a_key(
    running, booked, headers
):
    path = await letter_path(running)
    for asked in (OUTBOX, path):
        status, text, _ = await get(running, asked, **headers)
        assert status == 401
        assert "UNAUTHORIZED" in text
        assert "salma" not in text


async def test_a_test_key_with_the_scope_reads_the_outbox_until_it_is_revoked(running, booked):
    reader = {"Host": "box.example", "Authorization": f"Bearer {running.test_key}"}
    assert (await get(running, OUTBOX, **reader))[0] == 200

    live = {**reader, "Authorization": f"Bearer {running.live_key}"}
    assert (await get(running, OUTBOX, **live))[0] == 401

    narrow = await a_key(running.test, ("venue:read",))
    status, _, _ = await get(running, OUTBOX, **{**reader, "Authorization": f"Bearer {narrow}"})
    assert status == 403

    await running.test.database.write(
        lambda tx: tx.execute("UPDATE api_key SET revoked_at = :now", {"now": tx.now})
    )
    assert (await get(running, OUTBOX, **reader))[0] == 401
