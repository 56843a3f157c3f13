"""A phone on the venue's network, before and after it trusts the box's authority."""

import os
import subprocess

import pytest

from tests.browser.chromium import browser_fixture
from tests.journeys.house_box import a_house_box

CAMERA = ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream"]


@pytest.fixture
def served(tmp_path):
    """Run a box on the local network; yield its http and https addresses."""
    with a_house_box(tmp_path) as box:
        yield box.plain, box.secure.removesuffix("/test")


@pytest.fixture
def store(tmp_path):
    """A browser's certificate store, without the box's authority."""
    folder = tmp_path / "home" / ".pki" / "nssdb"
    folder.mkdir(parents=True)
    subprocess.run(["certutil", "-N", "--empty-password", "-d", f"sql:{folder}"], check=True)
    return folder


@browser_fixture
async def browser(tmp_path, store, chromium):
    """Open a browser that uses `store`."""
    opened = []

    async def open_browser():
        context = await chromium.launch_persistent(
            str(tmp_path / f"profile-{len(opened)}"),
            CAMERA,
            env={**os.environ, "HOME": str(tmp_path / "home")},
            locale="en-GB",
        )
        opened.append(context)
        return context.pages[0]

    yield open_browser
    for context in opened:
        await context.close()


def trust(store, authority):
    """Trust the authority by following the guide."""
    subprocess.run(
        ["certutil", "-A", "-d", f"sql:{store}", "-n", "box", "-t", "C,,", "-i", authority],
        check=True,
    )


async def test_without_the_trusted_authority_the_page_explains_what_to_do(served, browser):
    plain, secure = served
    page = await browser()

    await page.goto(f"{plain}/trust")

    await page.locator("[data-state=untrusted]").wait_for()
    assert await page.evaluate("isSecureContext") is False
    assert await page.locator("[data-check=camera]").get_attribute("data-holds") == "no"
    assert await page.locator("[data-check=offline]").get_attribute("data-holds") == "no"
    assert await page.locator("details[open] summary").all_inner_texts() == ["Linux"]
    with pytest.raises(Exception, match="ERR_CERT_AUTHORITY_INVALID"):
        await page.goto(f"{secure}/trust")


async def test_with_the_trusted_authority_camera_and_service_worker_work(
    served, browser, store, tmp_path
):
    plain, secure = served
    page = await browser()
    answer = await page.context.request.get(f"{plain}/trust/ca.crt")
    assert answer.headers["content-type"] == "application/x-x509-ca-cert"
    authority = tmp_path / "ca.crt"
    authority.write_bytes(await answer.body())
    trust(store, authority)
    page = await browser()

    await page.goto(f"{plain}/trust")
    await page.locator("[data-state=trusted] a").click()
    await page.locator("[data-state=done]").wait_for()

    assert page.url.startswith(secure)
    camera = "navigator.mediaDevices.getUserMedia({video: true}).then(s => s.getTracks().length)"
    assert await page.evaluate(camera) == 1
    await page.goto(f"{secure}/door")
    ready = "navigator.serviceWorker.ready.then(found => found.active.scriptURL)"
    assert (await page.evaluate(ready)).startswith(f"{secure}/door/")
