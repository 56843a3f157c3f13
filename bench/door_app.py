"""How long a guest waits: from the camera's picture of a code to the green verdict.

In Chromium with a fake camera that shows real guest passes, over a real box on this machine.
`.venv/bin/python bench/door_app.py` prints the median and the slowest.
"""

import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.browser.chromium import running_chromium
from tests.browser.door_world import door_world
from tests.browser.films import film
from tests.browser.phones import eventually
from tests.clocks import StoppedClock
from tests.conftest import with_settings

HOURS = (18, 19, 20, 21)  # five guests each

# From the moment a camera picture is taken, for the first picture in which a code was found, to the
# moment its verdict is painted.
WATCH = """() => {
  window.waits = [];
  const taken = new Map();
  const found = new Set();
  let latest = 0;
  let began = 0;
  const grab = window.createImageBitmap;
  window.createImageBitmap = (...picture) => {
    latest = performance.now();
    return grab(...picture);
  };
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (job, transfer) {
    if (job.picture) taken.set(job.id, latest);
    else this.addEventListener("message", ({ data }) => {
      for (const text of data.texts ?? []) {
        if (!found.has(text)) began = taken.get(data.id);
        found.add(text);
      }
      taken.delete(data.id);
    });
    return post.call(this, job, transfer);
  };
  const table = document.getElementById("verdict-table");
  new MutationObserver(() => {
    const start = began;
    requestAnimationFrame(() => setTimeout(() => window.waits.push(performance.now() - start)));
  }).observe(table, { childList: true });
}"""


async def measure(directory: Path) -> list[float]:
    """Milliseconds for each guest."""
    settings = with_settings(api={"unauthenticated_per_minute": 100_000})
    clock = StoppedClock()
    async with (
        running_chromium() as chromium,
        door_world(directory, clock, settings, chromium) as door,
    ):
        guests = [
            await door.guest(table=f"T{table}", slot=f"{hour}:00")
            for hour in HOURS
            for table in range(1, 6)
        ]
        texts = [await door.pass_of(guest) for guest in guests]
        phone = await door.phone(video=film(directory / "queue.mjpeg", texts))
        await phone.page.evaluate(WATCH)
        await phone.page.click("#start")

        async def all_are_in() -> bool:
            rows = await door.rows("SELECT id FROM reservation WHERE arrived > 0")
            return len(rows) == len(guests)

        await eventually(all_are_in)
        await asyncio.sleep(0.5)
        return list(await phone.page.evaluate("window.waits"))


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as directory:
        waits = asyncio.run(measure(Path(directory)))
    print(
        f"frame to green, {len(waits)} guests: median {statistics.median(waits):.0f} ms,"
        f" slowest {max(waits):.0f} ms"
    )


if __name__ == "__main__":
    main()
