"""`/openapi.json` and `/docs`: which addresses they name, and what the page may load."""

import pytest

from tests.conftest import with_settings

PUBLIC = "https://book.riad-atlas.example"


@pytest.fixture
def settings():
    return with_settings(server={"app_url": PUBLIC})


async def servers(running, path, host):
    async with running.client.get(path, headers={"Host": host}) as response:
        assert response.status == 200
        assert response.content_type == "application/json"
        return [server["url"] for server in (await response.json())["servers"]]


async def test_asked_at_its_public_address_the_document_names_it(running):
    found = await servers(running, "/openapi.json", "book.riad-atlas.example")

    assert found == [PUBLIC, f"{PUBLIC}/test"]


async def test_asked_elsewhere_the_document_stays_where_it_was_asked(running):
    assert await servers(running, "/openapi.json", "192.168.1.20:8080") == ["/", "/test"]


async def test_the_test_document_names_the_test_address_first(running):
    found = await servers(running, "/test/openapi.json", "book.riad-atlas.example")

    assert found == [f"{PUBLIC}/test", PUBLIC]


@pytest.mark.parametrize(
    ("prefix", "warning"),
    [("", "changes the venue's real data"), ("/test", "changes the test data only")],
)
async def test_the_page_says_whose_data_a_trial_changes(running, prefix, warning):
    async with running.client.get(f"{prefix}/docs/reference") as response:
        text = await response.text()

    assert warning in text
    assert f'href="{prefix}/openapi.json"' in text


async def test_the_page_may_load_nothing_but_its_own_files_and_the_icons_of_its_stylesheet(running):
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
    }


async def test_a_host_header_of_markup_is_refused_and_never_shown(running):
    async with running.client.get("/docs/reference", headers={"Host": 'x"><b>'}) as response:
        text = await response.text()

    assert response.status == 421
    assert "<b>" not in text
