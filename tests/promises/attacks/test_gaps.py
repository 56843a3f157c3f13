"""Rows of the security checklist without a test elsewhere."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.builders import a_body
from tests.waiting import within

ROOT = Path(__file__).parents[3]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
FLOORS = {"aiohttp": (3, 14, 3), "apsw": (3, 51, 3), "tzdata": (2026, 3)}


async def test_no_response_can_be_read_by_another_site(running):
    """With and without a preflight request, at every address."""
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    paths = {route.resource.canonical for route in running.app.router.routes()
             if route.resource is not None}  # fmt: skip
    streams = {path for path in paths if path.endswith("/events")}
    for path in sorted(paths - streams):
        for method in ("GET", "OPTIONS"):
            async with running.client.request(
                method, re.sub(r"\{[^}]*\}", "x", path), headers=headers, allow_redirects=False
            ) as response:
                named = [name for name in response.headers if name.startswith("Access-Control")]

                assert named == [], path
                assert (method, response.status) != ("OPTIONS", 200), path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/portal/sign-in", "application/x-www-form-urlencoded"),
        ("/terminal/v1/pair", "application/json"),
    ],
)
async def test_a_body_that_never_ends_is_aborted(running, monkeypatch, path, kind):
    monkeypatch.setattr("appliance.http.request._BODY_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", running.client.server.port)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
    try:
        writer.write(f"{head}Sec-Fetch-Site: same-origin\r\nContent-Length: 9\r\n\r\na".encode())
        async with within("an answer"):
            line = await reader.readline()
    finally:
        writer.close()

    assert line.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_every_installed_package_is_pinned_with_a_hash(path):
    lines = re.split(r"\n(?=\S)", path.read_text("utf-8"))
    named = [line for line in lines if line and not line.startswith("#")]

    assert named
    assert [
        line for line in named if not re.match(r"[\w.\[\],-]+==\S+ \\\n +--hash=sha256:", line)
    ] == []


@pytest.mark.parametrize("name", FLOORS)
def test_packages_with_known_vulnerabilities_are_pinned_to_fixed_versions(name):
    [version] = re.findall(
        rf"^{name}==([\d.]+)", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE
    )

    assert tuple(int(part) for part in version.split(".")) >= FLOORS[name]


async def test_one_guests_link_cannot_fill_the_disk_of_the_box(running, clock):
    _, made, _ = await running.call("POST", "/v1/reservations", json=a_body(date="2026-12-24"))
    path = made["claimUrl"].removeprefix("https://box.example")
    ours, answers = {"Sec-Fetch-Site": "same-origin"}, []

    for number in range(130):
        clock.advance(2)  # as fast as a party behind one router may tap
        form = {"name": f"Name {number % 2}"}
        async with running.client.post(path, data=form, headers=ours) as response:
            answers.append(response.status)

    lines, claims = await running.live.database.read(
        lambda reader: [
            reader.value("SELECT count(*) FROM history WHERE actor = 'guest'"),
            reader.value("SELECT count(*) FROM claim"),
        ]
    )
    assert (answers[0], answers[-1]) == (200, 429)
    assert claims <= lines == 100
    async with running.client.post(f"{path}/cancel", headers=ours) as response:
        assert response.status == 200
