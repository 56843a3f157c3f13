"""The start pages and what they may load."""

import re

import pytest

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("path", ["/", "/test"])
@pytest.mark.parametrize("accept", ["", "*/*", "application/json"])
async def test_the_start_pages_exist_for_every_client(running, path, accept):
    async with running.client.get(path, headers={"Accept": accept}) as response:
        assert (response.status, response.content_type) == (200, "text/html")


async def test_no_link_of_the_start_page_is_broken(running):
    async with running.client.get("/", headers=BROWSER) as response:
        links = re.findall(r'href="(/[^"?]*)"', await response.text())

    assert {"/docs", "/test", "/portal"} <= set(links)
    assert "/book" not in links
    for link in links:
        async with running.client.get(link, headers=BROWSER) as response:
            assert response.status == 200, link
