"""Counting waits: in the uptime of this start, and by the clock as it is set now."""

from appliance.store.connection import Transaction
from appliance.store.database import Database
from appliance.store.waits import list_waiting_endpoints, settle_some_waits
from appliance.webhooks.ladder import DELAYS_MS, longest_wait
from appliance.webhooks.uptime import Uptime

_LONGEST = tuple(longest_wait(attempts) for attempts in range(len(DELAYS_MS) + 1))


async def settle_waits(database: Database, uptime: Uptime) -> None:
    """Bring every pending retry to this boot, and its `due_at` to the present clock.

    In steps of 500 rows, between which others write. Needs a clock that is trusted: what is
    left of a wait after a start of the machine is told by it alone.
    """
    for endpoint_id in await database.read(list_waiting_endpoints):
        after: tuple[int, int] | None = (0, 0)
        while after is not None:
            after = await database.write(_settle, uptime, endpoint_id, after)


def _settle(
    tx: Transaction, uptime: Uptime, endpoint_id: str, after: tuple[int, int]
) -> tuple[int, int] | None:
    now = uptime.milliseconds()
    return settle_some_waits(tx, endpoint_id, after, uptime.boot, now, _LONGEST)
