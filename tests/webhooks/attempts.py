"""The request and the time limits of single attempts."""

import time

from appliance.webhooks.client import Budgets, Request

REQUEST = Request({}, b"{}")
# Long time limits, so that a busy machine fails no test. Only tests of timeouts use short ones.
BUDGETS = Budgets(total=60.0, connect=60.0, drain=0.2, idle=60.0)
SHORT = Budgets(total=1.0, connect=60.0, drain=0.2, idle=60.0)
SHORT_CONNECT = Budgets(total=60.0, connect=0.5, drain=0.2, idle=60.0)
LATE = 30.0  # receivers that hang do so for a minute


async def timed(awaitable):
    started = time.perf_counter()
    return await awaitable, time.perf_counter() - started
