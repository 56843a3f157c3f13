"""One attempt made by hand."""

import time

from appliance.webhooks.client import Budgets, Request

REQUEST = Request({}, b"{}")
# A busy machine is no fault: only a test about a time that runs out has a short one.
BUDGETS = Budgets(total=60.0, connect=60.0, drain=0.2, idle=60.0)
SHORT = Budgets(total=1.0, connect=60.0, drain=0.2, idle=60.0)
SHORT_CONNECT = Budgets(total=60.0, connect=0.5, drain=0.2, idle=60.0)
LATE = 30.0  # what hangs in these tests hangs for a minute


async def timed(awaitable):
    started = time.perf_counter()
    return await awaitable, time.perf_counter() - started
