import pytest
from aiohttp import web

from web.rendering import STATIC_FILES, STATIC_ROUTES, StaticFiles


@pytest.fixture
async def browser(aiohttp_client, tmp_path):
    (tmp_path / "static" / "docs").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "static" / "guest.css").write_text("a{}")
    (tmp_path / "static" / "docs" / "docs.js").write_text("1")
    (tmp_path / "static" / ".built").write_text("")
    app = web.Application()
    app[STATIC_FILES] = StaticFiles(tmp_path / "static")
    app.add_routes([web.route(*route) for route in STATIC_ROUTES])
    return await aiohttp_client(app)


async def test_a_file_requested_by_its_hash_is_cached_for_a_year(browser):
    url = browser.app[STATIC_FILES].url("guest.css")
    answer = await browser.get(url)
    assert answer.status == 200
    assert answer.content_type == "text/css"
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize("url", ["/static/guest.css", "/static/guest.css?v=another"])
async def test_a_file_requested_without_its_hash_is_revalidated(browser, url):
    answer = await browser.get(url)
    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "path", ["nothing.css", "../secret.txt", "..%2fsecret.txt", ".built", "docs", "docs/../x"]
)
async def test_an_unlisted_file_is_not_found(browser, path):
    assert (await browser.get(f"/static/{path}")).status == 404


async def test_a_changed_file_gets_another_address(tmp_path):
    for content in "ab":
        (tmp_path / content).mkdir()
        (tmp_path / content / "guest.css").write_text(f"{content}{{}}")
    addresses = {StaticFiles(tmp_path / content).url("guest.css") for content in "ab"}
    assert len(addresses) == 2


@pytest.mark.parametrize("name", ["static/book.css", "portal/sign-in", "metrics", "health", "docs"])
async def test_a_head_request_to_a_readable_page_gets_its_headers_only(running, name):
    answers = {}
    for method in ("GET", "HEAD"):
        async with running.client.request(method, f"/{name}", allow_redirects=False) as answer:
            answers[method] = answer.status, answer.content_type, len(await answer.read())
    assert answers["HEAD"] == (*answers["GET"][:2], 0)
    assert answers["GET"][2] > 0
