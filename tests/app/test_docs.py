"""`/openapi.json` and `/docs`: their addresses, and what the pages may load."""

import pytest

from tests.conftest import with_settings

PUBLIC = "https://book.riad-atlas.example"


@pytest.fixture
def settings():
    return with_settings(server={"app_url": PUBLIC})


async def servers(running, path, host, **headers):
    async with running.client.get(path, headers={"Host": host, **headers}) as response:
        assert response.status == 200
        assert response.content_type == "application/json"
        return [server["url"] for server in (await response.json())["servers"]]


@pytest.mark.parametrize(
    ("host", "headers", "base"),
    [
        ("book.riad-atlas.example", {}, PUBLIC),
        ("192.168.1.20:8080", {}, "http://192.168.1.20:8080"),
        ("192.168.1.20:8080", {"X-Forwarded-Proto": "https"}, "https://192.168.1.20:8080"),
    ],
)
async def test_the_openapi_document_lists_the_requested_address_first(running, host, headers, base):
    assert await servers(running, "/openapi.json", host, **headers) == [base, f"{base}/test"]
    assert await servers(running, "/test/openapi.json", host, **headers) == [f"{base}/test", base]


@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_each_environments_docs_page_shows_its_own_openapi_document(running, prefix):
    async with running.client.get(f"{prefix}/docs/reference") as response:
        assert f'href="{prefix}/openapi.json"' in await response.text()


async def test_the_docs_page_may_load_only_its_own_files_and_icons(running):
    async with running.client.get("/docs/reference") as response:
        policy = dict(
            part.strip().split(" ", 1)
            for part in response.headers["Content-Security-Policy"].split(";")
        )

    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "object-src": "'none'",
    }


async def test_a_host_header_with_markup_is_refused_and_not_shown(running):
    async with running.client.get("/docs/reference", headers={"Host": 'x"><b>'}) as response:
        text = await response.text()

    assert response.status == 421
    assert "<b>" not in text


async def tried(running, prefix):
    """Send the requests of the Execute button: an availability query and a booking."""
    async with running.client.get(f"{prefix}/openapi.json") as response:
        paths = (await response.json())["paths"]
    asked = paths["/v1/availability"]["get"]["parameters"]
    body = paths["/v1/reservations"]["post"]["requestBody"]["content"]["application/json"]
    query = {asks["name"]: asks["example"] for asks in asked if "example" in asks}
    return query, body["examples"]["example"]["value"]


@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_the_prefilled_booking_succeeds_today_and_tomorrow(running, prefix):
    for status in (201, 200):
        query, wish = await tried(running, prefix)
        answered, _, _ = await running.call("POST", f"{prefix}/v1/reservations", json=wish)
        assert answered == status

    _, body, _ = await running.call("GET", f"{prefix}/v1/availability", params=query)
    held = [table["id"] for table in body["tables"] if table["blockedBy"] == "partner"]
    assert held == [wish["tableId"]]

    running.clock.advance(86_400)
    _, wish = await tried(running, prefix)
    answered, _, _ = await running.call("POST", f"{prefix}/v1/reservations", json=wish)
    assert answered == 201


async def test_the_prefilled_booking_uses_an_open_evening(running):
    def close(tx):
        tx.execute("UPDATE slot SET days_of_week = '[0]'")  # only Sundays are open
        tx.insert(
            "closing_day",
            {"id": tx.new_id(), "first_day": "2026-11-28", "last_day": "2026-11-29", "reason": ""},
        )

    await running.live.database.write(close)

    _, wish = await tried(running, "")

    assert wish["date"] == "2026-12-06"
