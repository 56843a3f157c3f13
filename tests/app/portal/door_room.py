"""Helpers for tests of the door's pages: create a terminal, scan a code, create a pass."""

from appliance.door.guest_pass import pass_text
from appliance.door.terminals import issue_terminal
from tests.unit.arrivals import add_reservation


async def a_terminal(running, name="Front door", role="override"):
    return await running.live.database.write(issue_terminal, name, role)


async def scan(running, token, code, scan_id="scan-1", **more):
    async with running.client.post(
        "/terminal/v1/scans",
        json={"scanId": scan_id, "code": code, **more},
        headers={"Authorization": f"Bearer {token}"},
    ) as response:
        return response.status, await response.json()


async def a_pass(running, **changes):
    reservation = await running.live.database.write(add_reservation, **changes)
    text = await running.live.database.read(pass_text, running.live.keyring, "live", reservation)
    return reservation, text
