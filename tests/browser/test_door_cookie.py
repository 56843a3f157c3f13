"""A real browser as a terminal: its token in a cookie, its feed, and what revocation wipes."""

import pytest

from appliance.actions.offer_pairing import offer_pairing
from appliance.actions.revoke_terminal import revoke_terminal
from tests.browser.chromium import browser_fixture

CALL = """async ([method, path, body]) => {
    const response = await fetch(path, {method, body: body && JSON.stringify(body)});
    return [response.status, await response.json()];
}"""
LISTEN = """path => new Promise((found) => {
    window.heard = [];
    const feed = new EventSource(path);
    for (const kind of ["totals", "check-in", "revoked"])
        feed.addEventListener(kind, (event) => { window.heard.push(kind); found(event.data); });
})"""


@browser_fixture
async def page(running, browser):
    page = await browser.new_page()
    await page.goto(str(running.client.make_url("/docs")))
    return page


@pytest.mark.parametrize("prefix", ["", "/test"])
async def test_a_browser_is_paired_by_a_cookie_and_wiped_when_it_is_revoked(running, page, prefix):
    environment = running.test if prefix else running.live
    _, code = await environment.database.write(offer_pairing, "Porte 1", "search")
    base = f"{prefix}/terminal/v1"

    status, paired = await page.evaluate(
        CALL, ["POST", f"{base}/pair", {"code": code, "cookie": True, "name": "Nora"}]
    )

    assert (status, paired["terminal"]["name"], "token" in paired) == (200, "Nora", False)
    assert await page.evaluate("document.cookie") == ""
    [cookie] = [c for c in await page.context.cookies() if c["name"].startswith("__Host-")]
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
    assert cookie["name"].endswith("-test") is bool(prefix)

    status, me = await page.evaluate(CALL, ["GET", f"{base}/me", None])
    scanned = {"scanId": "one", "code": "SVC-7K2M"}
    assert (status, me["terminal"]) == (200, paired["terminal"])
    assert (await page.evaluate(CALL, ["POST", f"{base}/scans", scanned]))[0] == 200
    assert "expected" in await page.evaluate(LISTEN, f"{base}/events")

    await page.evaluate("localStorage.setItem('guests', 'Salma')")
    await environment.database.write(revoke_terminal, me["terminal"]["id"])
    await page.wait_for_function("window.heard.includes('revoked')")
    status, refusal = await page.evaluate(CALL, ["GET", f"{base}/me", None])

    assert (status, refusal["code"]) == (401, "KEY_REVOKED")
    assert await page.evaluate("localStorage.getItem('guests')") is None
    assert not [c for c in await page.context.cookies() if c["name"].startswith("__Host-")]
    status, refusal = await page.evaluate(CALL, ["GET", f"{base}/me", None])
    assert (status, refusal["code"]) == (401, "UNAUTHORIZED")
