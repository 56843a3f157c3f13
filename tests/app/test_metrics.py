"""`GET /metrics`: for this machine and the owner, with correct counts."""

import pytest

from tests.app.portal.door_room import a_terminal, scan
from tests.builders import a_body
from tests.conftest import running_box, with_settings


async def test_the_metrics_match_the_stored_rows(running):
    await running.call("POST", "/v1/reservations", json=a_body())

    async with running.client.get("/metrics") as response:
        text = await response.text()

    assert response.status == 200
    assert 'venuebox_reservations{environment="live",status="confirmed"} 1.0' in text
    assert "venuebox_requests_total" in text
    assert 'venuebox_wal_bytes{environment="live"}' in text
    assert "Idrissi" not in text


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via"])
async def test_the_metrics_page_is_not_found_through_a_proxy(running, header):
    async with running.client.get("/metrics", headers={header: "203.0.113.9"}) as response:
        assert response.status == 404


async def test_the_metrics_page_is_available_through_a_tunnel_only_with_the_token(tmp_path, clock):
    token = "t" * 16
    server = {"app_url": "https://riad.example", "metrics_token": token}
    async with running_box(tmp_path, clock, with_settings(server=server)) as running:

        async def ask(**headers):
            async with running.client.get("/metrics", headers=headers) as response:
                return response.status

        assert await ask() == 404
        assert await ask(Authorization="Bearer " + "u" * 16) == 404
        assert await ask(Authorization="Bearer ") == 404
        assert await ask(Authorization=f"Bearer {token}") == 200


async def test_a_scan_is_counted_once_however_often_the_metrics_are_read(running):
    _, token = await a_terminal(running)
    for number in (1, 2, 3):
        await scan(running, token, "no pass at all", f"scan-{number}")
        async with running.client.get("/metrics") as response:
            text = await response.text()
        [line] = [line for line in text.splitlines() if line.startswith("venuebox_scans")]
        assert line == f'venuebox_scans{{environment="live",result="unknown_code"}} {number}.0'
