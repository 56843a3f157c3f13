"""The start pages and what they may load."""

import re

import pytest

from tests.conftest import set_rules

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("path", ["/", "/test"])
@pytest.mark.parametrize("accept", ["", "*/*", "application/json"])
async def test_the_start_pages_are_there_for_every_client(running, path, accept):
    async with running.client.get(path, headers={"Accept": accept}) as response:
        assert (response.status, response.content_type) == (200, "text/html")


async def test_every_link_of_the_start_page_leads_somewhere(running):
    async with running.client.get("/", headers=BROWSER) as response:
        links = re.findall(r'href="(/[^"?]*)"', await response.text())

    assert {"/docs", "/test", "/portal"} <= set(links)
    assert "/book" not in links
    for link in links:
        async with running.client.get(link, headers=BROWSER) as response:
            assert response.status == 200, link


@pytest.mark.parametrize("path", ["/", "/test", "/docs"])
async def test_the_pages_may_load_nothing_but_the_boxs_own_files(running, path):
    async with running.client.get(path, headers=BROWSER) as response:
        policy = response.headers["Content-Security-Policy"]
        page = await response.text()

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "data:" not in policy
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", page)


class TestWhereGuestsMayBook:
    @pytest.fixture(autouse=True)
    async def booking_page(self, running):
        await set_rules(running.live, booking_page=1)

    async def test_the_start_page_leads_to_the_booking_page(self, running):
        async with running.client.get("/", headers=BROWSER) as response:
            assert 'href="/book"' in await response.text()
        async with running.client.get("/book", headers=BROWSER) as response:
            assert response.status == 200
