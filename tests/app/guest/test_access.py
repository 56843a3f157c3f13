"""The access page: its contents, its language, and its privacy."""

import base64
import hashlib
import io
import re

import pytest
import zxingcpp
from PIL import Image

from appliance.clock import parse_instant
from appliance.door.guest_pass import decode_pass


def pass_in(html: str) -> str | None:
    found = re.search(r'data-pass="([^"]*)"', html)
    return found.group(1) if found else None


async def test_the_page_shows_guest_venue_access_code_and_the_pass_of_the_reservation(world, guest):
    reservation = await world.reserve(
        access_code="SVC-7K2M", pass_id=b"12345678", guests=7, slot=None
    )

    answer = await guest.get(world.access(reservation))
    html = await answer.text()

    assert answer.status == 200
    assert answer.content_type == "text/html"
    words = ["Riad Atlas", "Salma Bennani", "T5", "Terrasse 5", "SVC-7K2M"]
    assert [word for word in words if word not in html] == []
    read = decode_pass(pass_in(html)).guest_pass
    assert (read.version, read.pass_id, read.guests, read.slot) == (0x01, b"12345678", 7, None)


@pytest.mark.parametrize("status", ["cancelled", "declined"])
async def test_the_page_of_a_closed_reservation_has_no_pass_code_or_buttons(world, guest, status):
    reservation = await world.reserve(status=status, access_code="SVC-7K2M")
    html = await (await guest.get(world.access(reservation))).text()
    assert pass_in(html) is None
    assert "SVC-7K2M" not in html
    assert "calendar.ics" not in html
    assert (await guest.get(f"{world.access(reservation)}/pass.png")).status == 404


@pytest.mark.parametrize(
    ("accepted", "code", "direction"),
    [("en-US,en", "en", "ltr"), ("ar-MA,ar", "ar", "rtl"), ("ja", "fr", "ltr")],
)
async def test_the_page_is_in_the_visitors_language(world, guest, accepted, code, direction):
    path = world.access(await world.reserve())
    answer = await guest.get(path, headers={"Accept-Language": accepted})
    html = await answer.text()
    assert f'<html lang="{code}" dir="{direction}">' in html
    assert answer.headers["Content-Language"] == code


async def test_guest_pages_are_not_cached_indexed_framed_or_leaked_by_referrer(world, guest):
    path = world.access(await world.reserve())

    for answer in (await guest.get(path), await guest.get(f"{path}/calendar.ics"),
                   await guest.get("/access/wrong")):  # fmt: skip
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert answer.headers["X-Robots-Tag"] == "noindex"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        policy = answer.headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'self'", "object-src 'none'", "base-uri 'none'",
                "frame-ancestors 'none'"} <= set(policy)  # fmt: skip


async def test_the_content_security_policy_allows_only_the_styles_in_the_page(world, guest):
    page = await guest.get(world.access(await world.reserve()))

    (styles,) = re.findall("<style>(.*?)</style>", await page.text(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(styles.encode()).digest()).decode()
    assert f"style-src 'self' 'sha256-{digest}'" in page.headers["Content-Security-Policy"]
    assert ".pass" in styles


@pytest.mark.parametrize("link", ["access", "claim"])
async def test_a_link_preview_names_the_venue_but_no_guest(world, guest, link):
    path = getattr(world, link)(await world.reserve())

    page = await (await guest.get(path)).text()

    told = dict(re.findall('<meta property="og:([a-z]+)" content="([^"]*)">', page))
    assert told["title"] == "Riad Atlas"
    assert told["image"].startswith("https://box.example/static/door-512.png")
    assert "Salma" not in str(told) + page.partition("</title>")[0]


async def dump(world) -> bytes:
    return await world.database.read(lambda reader: reader.connection.serialize("main"))


async def test_viewing_the_page_changes_nothing(world, guest):
    reservation = await world.reserve()
    paths = [world.access(reservation), f"{world.access(reservation)}/calendar.ics",
             world.claim(reservation), "/access/wrong", "/claim-guest/wrong"]  # fmt: skip
    before = await dump(world)

    for path in paths:
        await guest.get(path)
        await guest.head(path)

    assert await dump(world) == before


async def test_an_unchanged_page_is_not_sent_again(world, guest):
    reservation = await world.reserve()
    path = world.access(reservation)
    first = await guest.get(path)
    mark = first.headers["ETag"]
    assert int(first.headers["Venuebox-Link-Ends"]) == parse_instant("2026-11-22T12:00:00Z")
    assert (await guest.get("/access/nobodys")).headers["Venuebox-Link-Ends"] == "0"

    same = await guest.get(path, headers={"If-None-Match": mark})
    in_another_language = await guest.get(f"{path}?lang=ar", headers={"If-None-Match": mark})
    await world.change(reservation, checked_in_at=world.clock.now(), arrived=4)
    changed = await guest.get(path, headers={"If-None-Match": mark})

    assert (same.status, await same.read()) == (304, b"")
    assert in_another_language.status == 200
    assert changed.status == 200
    assert changed.headers["ETag"] != mark


async def test_the_downloaded_image_contains_the_pass_and_is_named_after_the_evening(world, guest):
    path = world.access(await world.reserve())

    answer = await guest.get(f"{path}/pass.png")
    image = Image.open(io.BytesIO(await answer.read()))
    read = zxingcpp.read_barcode(image.convert("L"))

    assert answer.content_type == "image/png"
    assert 'filename="riad-atlas-2026-11-21.png"' in answer.headers["Content-Disposition"]
    assert read.text == pass_in(await (await guest.get(path)).text())
    assert read.ec_level == "M"
    assert image.size == (784, 784)


async def test_the_service_worker_controls_only_guest_pages_of_its_environment(worlds, guest):
    for world in worlds:
        answer = await guest.get(f"{world.environment.prefix}/access/service-worker.js")
        scope = f"{world.environment.prefix}/access/"
        assert answer.headers["Service-Worker-Allowed"] == scope
        assert f'"scope": "{scope}"' in await answer.text()
        assert answer.content_type == "text/javascript"
