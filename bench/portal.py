"""How fast the evening board is: made by the server, and green in the browser after a scan.

A page of 200 tables, 4 slots and 400 reservations, over a real box on this machine.
`.venv/bin/python bench/portal.py` prints medians and the slowest.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from aiohttp import ClientSession
from playwright.async_api import Page

from appliance.database.connection import Transaction
from appliance.door.check_in import check_in
from appliance.door.scan import Reading, Scan
from appliance.door.terminals import get_portal_terminal
from appliance.reservations.model import Reservation
from tests.browser.chromium import running_chromium
from tests.browser.portal_world import PortalWorld, portal_world
from tests.builders import TONIGHT
from tests.clocks import StoppedClock
from tests.conftest import with_settings
from tests.unit.arrivals import add_reservation

TABLES, SLOTS, RESERVATIONS = 200, ("19:30", "20:30", "21:30", "22:30"), 400
PAGES, SCANS = 40, 25

# Notes when the chip of each reservation is shown as arrived, on the browser's own clock.
WATCH = """() => {
  window.greens = {};
  const look = () => requestAnimationFrame(() => {
    for (const chip of document.querySelectorAll(".guest.in"))
      window.greens[chip.dataset.reservation] ??= Date.now();
  });
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
}"""


def furnish(tx: Transaction) -> list[Reservation]:
    """The big evening."""
    for n in range(7, TABLES + 1):
        table = {"id": tx.new_id(), "position": n, "number": f"T{n}", "name": f"Terrasse {n}",
                 "capacity_min": 2, "capacity_max": 8, "minimum_spend": 500, "type": "standard",
                 "bookable": 1}  # fmt: skip
        tx.insert("venue_table", table)
    tx.execute("UPDATE venue_table SET bookable = 1")
    tx.execute("DELETE FROM slot")
    for position, start in enumerate(SLOTS):
        end = f"{int(start[:2]) + 1}:30"
        slot = {"id": tx.new_id(), "position": position, "name": f"Service {position}",
                "start": start, "end": end, "days_of_week": "[0,1,2,3,4,5,6]"}  # fmt: skip
        tx.insert("slot", slot)
    ids = dict(tx.rows("SELECT number, id FROM venue_table"))
    return [
        add_reservation(
            tx,
            table_id=ids[f"T{n % TABLES + 1}"],
            slot=SLOTS[n // TABLES * 2],
            customer_name=f"Salma Idrissi {n}",
            access_code=f"SVC-{n:04d}",
            source=("partner", "platform", "manual")[n % 3],
        )
        for n in range(RESERVATIONS)
    ]


async def pages(world: PortalWorld) -> None:
    """What one page of the board takes, as a client on this machine sees it."""
    cookie = {"Cookie": f"{world.session_cookie}={world.secret}"}
    for path in ("/portal/tonight", f"/portal/tonight/rows?tables={await one_table(world)}"):
        waits, size = [], 0
        async with ClientSession(headers=cookie) as session:
            for _ in range(PAGES):
                started = time.perf_counter()
                async with session.get(world.box.url + path) as answer:
                    assert answer.status == 200
                    size = len(await answer.read())
                waits.append((time.perf_counter() - started) * 1000)
        tell(f"GET {path[:23]} ({size / 1000:.0f} kB)", waits[5:])


async def scans(world: PortalWorld, page: Page, guests: list[Reservation]) -> None:
    """From a scan's arrival at the box to the green chip."""
    await page.goto("/portal/tonight")
    await page.evaluate(WATCH)
    await page.wait_for_timeout(1000)
    environment, waits = world.box.environment, []
    for guest in guests[:SCANS]:
        started = time.time()
        await environment.database.write(admit, guest.id)
        found = await page.wait_for_function("(id) => window.greens[id]", arg=guest.id)
        waits.append(await found.json_value() - started * 1000)
        await page.wait_for_timeout(200)
    tell("scan at the door to green chip", waits)


def admit(tx: Transaction, reservation_id: str) -> None:
    """As a scan of the guest's pass does."""
    scan = Scan(tx.new_id(), Reading("list", (reservation_id,)))
    assert check_in(tx, get_portal_terminal(tx), scan, 24 * 60).verdict.admitted


async def one_table(world: PortalWorld) -> str:
    """A table's id."""
    [(table,)] = await world.box.rows("SELECT id FROM venue_table ORDER BY position LIMIT 1")
    return str(table)


def tell(what: str, waits: list[float]) -> None:
    print(f"{what}: median {statistics.median(waits):.0f} ms, slowest {max(waits):.0f} ms")


async def main(directory: Path) -> None:
    settings: Any = with_settings(api={"unauthenticated_per_minute": 100_000})
    clock = StoppedClock(f"{TONIGHT}T19:00:00Z")
    async with (
        running_chromium() as chromium,
        portal_world(directory, clock, settings, chromium, await chromium.shared()) as w,
    ):
        guests = await w.box.environment.database.write(furnish)
        page = await w.desk()
        await pages(w)
        await scans(w, page, guests)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="venuebox-portal-") as folder:
        asyncio.run(main(Path(folder)))
